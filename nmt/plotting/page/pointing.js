// The pointer and the focus in the drawings of a page. The views that it shows are in `shown`.

const shown = { views: [], pinned: null };

/** The other model's view follows where it shows the same words. */
function point(view, focus) {
  for (const shownView of shown.views) highlight(shownView, shownView === view ? focus : shared(view, shownView, focus));
}

function shared(view, second, focus) {
  if (focus === null) return null;
  const kept = SIDES.filter(
    (side) => focus[side] !== undefined && String(view.units[side]) === String(second.units[side]),
  );
  return kept.length ? Object.fromEntries(kept.map((side) => [side, focus[side]])) : null;
}

/** What an element stands for: {source}, {target}, both, or null. */
function focusOf(node) {
  const word = node.closest?.(".word[data-at]");
  if (word) return { [word.parentElement.dataset.side]: Number(word.dataset.at) };
  const place = node.closest?.("[data-source], [data-target]");
  if (!place) return null;
  return Object.fromEntries(Object.entries({ ...place.dataset }).map(([side, at]) => [side, Number(at)]));
}

function restore() {
  const { view, focus } = shown.pinned ?? { view: shown.views[0], focus: null };
  point(view, focus);
}

function pin(view, focus) {
  const again = JSON.stringify(shown.pinned?.focus) === JSON.stringify(focus) && shown.pinned?.view === view;
  shown.pinned = again || !focus ? null : { view, focus };
  restore();
}

function listen(view) {
  for (const part of [view.figure, view.table]) {
    part.addEventListener("pointerover", (event) => {
      const focus = event.pointerType === "touch" ? null : focusOf(event.target);
      if (focus) point(view, focus);
    });
    part.addEventListener("pointerleave", restore);
    part.addEventListener("click", (event) => pin(view, focusOf(event.target)));
  }
  view.figure.addEventListener("focusin", (event) => {
    if (event.target.matches(":focus-visible")) point(view, focusOf(event.target));
  });
  view.figure.addEventListener("focusout", restore);
}
