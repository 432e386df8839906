// The list of sentences: what it can be sorted by, and which one is shown.

function sortings() {
  const figures = Object.keys(FIGURES).filter((key) =>
    data.sentences.some(({ readings }) => readings[0].figures[key] != null),
  );
  const plain = figures.map((key) => ({
    key,
    name: FIGURES[key].name,
    value: ({ readings }) => readings[0].figures[key],
  }));
  const compared =
    data.models.length < 2
      ? []
      : figures
          .filter((key) => key !== "length")
          .map((key) => ({
            key,
            name: `${FIGURES[key].name}, second minus first`,
            value: ({ readings: [one, two] }) => difference(two.figures[key], one.figures[key]),
          }));
  return [{ key: null, name: "line", value: ({ number }) => number }, ...plain, ...compared];
}

function difference(one, other) {
  return one == null || other == null ? null : one - other;
}

const chosenSorting = () => state.sortings[Number(element("sort").value)];

/** Sort and show the first sentence, for which one sorts; sentences without the figure come last either way. */
function sortList() {
  const values = data.sentences.map(chosenSorting().value);
  const turned = state.upwards ? 1 : -1;
  const rank = (at) => values[at] ?? turned * Infinity;
  state.order = data.sentences
    .map((_, at) => at)
    .sort((one, other) => turned * compare(rank(one), rank(other)) || one - other);
  state.at = 0;
  element("direction").textContent = state.upwards ? "↑" : "↓";
  element("direction").setAttribute("aria-label", `Sorted ${state.upwards ? "upwards" : "downwards"}; turn round`);
  element("list").replaceChildren(...state.order.map((at, place) => drawEntry(data.sentences[at], place)));
  showSentence();
}

function compare(one, other) {
  return one === other ? 0 : one < other ? -1 : 1;
}

function drawEntry({ number, readings, ...rest }, place) {
  const { key, value } = chosenSorting();
  const figure = key && value({ number, readings, ...rest });
  const text = make("span", { class: "text", dir: "auto" }, readings[0].words.source.join(" "));
  const shown = figure == null ? "" : FIGURES[key].write(figure);
  const parts = [make("span", { class: "number" }, number), text, make("span", { class: "figure" }, shown)];
  return make("li", { role: "option", id: `entry-${place}`, "data-place": place }, ...parts);
}

function markChosen() {
  const list = element("list");
  for (const entry of list.children) entry.setAttribute("aria-selected", Number(entry.dataset.place) === state.at);
  list.setAttribute("aria-activedescendant", `entry-${state.at}`);
  const chosen = list.children[state.at];
  // Only the list may scroll: on a phone it lies below the figure, which must stay in sight.
  if (
    chosen.offsetTop < list.scrollTop ||
    chosen.offsetTop + chosen.offsetHeight > list.scrollTop + list.clientHeight
  ) {
    list.scrollTop = chosen.offsetTop - list.clientHeight / 2;
  }
}
