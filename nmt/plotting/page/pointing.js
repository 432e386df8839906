// The pointer and the keys in the drawings of a page. The views that it shows are in `shown`.

const shown = { views: [], pinned: null };

/** The other model's view follows where it shows the same words. */
function point(view, focus) {
  for (const other of shown.views) highlight(other, other === view ? focus : shared(view, other, focus));
}

function shared(view, other, focus) {
  if (focus === null) return null;
  const kept = SIDES.filter(
    (side) => focus[side] !== undefined && String(view.units[side]) === String(other.units[side]),
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
  view.figure.addEventListener("keydown", (event) => moveWord(view, event));
}

// --- keys -----------------------------------------------------------------------------------------------------------

/** Arrow keys go where they point, whichever way the words run. */
function moveWord(view, event) {
  const { side } = event.target.parentElement.dataset;
  const step = stepOf(
    event.key,
    !view.figure.classList.contains("down"),
    getComputedStyle(event.target.parentElement).direction,
  );
  if (!side || step === null) return;
  event.preventDefault();
  event.stopPropagation();
  const at = Number(event.target.dataset.at);
  const last = view.words[side].length - 1;
  if (step === "over") focusWord(view, OTHER[side], partnersOf(view, side, at)[0]?.at);
  else focusWord(view, side, Math.min(Math.max(at + step, 0), last));
}

function stepOf(key, across, direction) {
  const [back, on] = across ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const turned = across && direction === "rtl" ? -1 : 1;
  const steps = { [back]: -turned, [on]: turned, Home: -Infinity, End: Infinity };
  return steps[key] ?? (key.startsWith("Arrow") ? "over" : null);
}

/** One word of a row is reached by Tab, the others by arrow keys. */
function focusWord(view, side, at) {
  if (at === undefined) return;
  view.words[side].forEach((word, other) => {
    word.tabIndex = other === at ? 0 : -1;
  });
  view.words[side][at].focus();
}

// --- light and dark -------------------------------------------------------------------------------------------------

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Let a button switch between light and dark. */
function listenToTheme(button) {
  const show = () => button.setAttribute("aria-pressed", isDark());
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}
