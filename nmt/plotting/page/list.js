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
  const compared = figures.map((key) => ({
    key,
    name: `${FIGURES[key].name}, second minus first`,
    value: ({ readings: [one, two] }) => difference(two.figures[key], one.figures[key]),
  }));
  const shown = data.models.length > 1 ? [...plain, ...compared.filter(({ key }) => key !== "length")] : plain;
  return [{ key: null, name: "line", value: ({ number }) => number }, ...shown];
}

function difference(one, other) {
  return one == null || other == null ? null : one - other;
}

const chosenSorting = () => state.sortings[Number(element("sort").value)];

/** The sentences that match the search, in the chosen order; those without the figure come last either way. */
function fillList() {
  const values = data.sentences.map(chosenSorting().value);
  const turned = state.upwards ? 1 : -1;
  const rank = (at) => values[at] ?? turned * Infinity;
  const wanted = searchable(element("search").value.trim());
  state.order = data.sentences
    .map((_, at) => at)
    .filter((at) => textOf(data.sentences[at]).includes(wanted))
    .sort((one, other) => turned * compare(rank(one), rank(other)) || one - other);
  element("nothing").hidden = state.order.length > 0;
  element("direction").textContent = state.upwards ? "↑" : "↓";
  element("direction").setAttribute("aria-label", `Sorted ${state.upwards ? "upwards" : "downwards"}; turn round`);
  element("list").replaceChildren(...state.order.map((at, place) => drawEntry(data.sentences[at], place)));
}

/** Sort, and show the first sentence, for which one sorts. */
function sortList() {
  fillList();
  go(0);
}

/** Narrow the list; another sentence is shown only if the present one is not among those that match. */
function searchList() {
  fillList();
  if (placeOf(state.current) < 0 && state.order.length) go(0);
  else showPlace();
}

/** All that is written of a sentence: source, translations and reference. */
function textOf({ readings, reference }) {
  return searchable([...readings.flatMap(({ words }) => SIDES.map((side) => words[side].join(" "))), reference].join("\n"));
}

function searchable(text) {
  return text.normalize("NFKC").toLocaleLowerCase();
}

/** Where a sentence stands in the list; -1 if it is not in it. */
const placeOf = (index) => state.order.indexOf(index);

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
  const place = placeOf(state.current);
  for (const entry of list.children) entry.setAttribute("aria-selected", Number(entry.dataset.place) === place);
  list.removeAttribute("aria-activedescendant");
  if (place < 0) return;
  list.setAttribute("aria-activedescendant", `entry-${place}`);
  const chosen = list.children[place];
  // Only the list may scroll: on a phone it lies below the figure, which must stay in sight.
  if (
    chosen.offsetTop < list.scrollTop ||
    chosen.offsetTop + chosen.offsetHeight > list.scrollTop + list.clientHeight
  ) {
    list.scrollTop = chosen.offsetTop - list.clientHeight / 2;
  }
}
