// The list of sentences: what it is sorted by, and which of them match the search.

function sortings() {
  const choices = [{ key: null, name: "line", value: ({ number }) => number }];
  for (const [key, { name }] of Object.entries(FIGURES)) {
    if (data.sentences.every(({ readings }) => readings[0].figures[key] == null)) continue;
    choices.push({ key, name, value: ({ readings }) => readings[0].figures[key] });
    if (data.models.length > 1 && key !== "length") {
      choices.push({ key, name: `${name}, second minus first`, value: ({ readings }) => difference(readings, key) });
    }
  }
  return choices;
}

function difference([first, second], key) {
  const isKnown = first.figures[key] != null && second.figures[key] != null;
  return isKnown ? second.figures[key] - first.figures[key] : null;
}

/** The sentences that match the search, in the chosen order; those without the figure come last either way. */
function fillList() {
  const { key, value } = state.sortings[Number(element("sort").value)];
  const direction = state.upwards ? 1 : -1;
  const rank = (at) => direction * (value(data.sentences[at]) ?? direction * Infinity);
  const wanted = searchable(element("search").value.trim());
  const matches = data.sentences.map((_, at) => at).filter((at) => textOf(data.sentences[at]).includes(wanted));
  state.order = matches.sort((first, second) => rank(first) - rank(second) || first - second);
  element("nothing").hidden = state.order.length > 0;
  element("direction").textContent = state.upwards ? "↑" : "↓";
  const figureOf = (sentence) => (key && value(sentence) != null ? FIGURES[key].write(value(sentence)) : "");
  element("list").replaceChildren(
    ...state.order.map((at) => drawEntry(data.sentences[at], figureOf(data.sentences[at]))),
  );
  showPlace();
}

/** All that is written of a sentence: source, translations and reference. */
function textOf({ readings, reference }) {
  return searchable([...readings.flatMap(({ words }) => SIDES.map((side) => words[side].join(" "))), reference].join("\n"));
}

function searchable(text) {
  return text.normalize("NFKC").toLocaleLowerCase();
}

function drawEntry({ number, readings }, figure) {
  const text = make("span", { class: "text", dir: "auto" }, readings[0].words.source.join(" "));
  const cells = [make("span", { class: "number" }, number), text, make("span", { class: "figure" }, figure)];
  return make("li", {}, make("a", { href: `#${number}` }, ...cells));
}
