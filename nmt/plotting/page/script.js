// The page: which sentence, in what units, from which weight on.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const FIGURES = {
  bleu: { name: "BLEU", write: (value) => value.toFixed(1) },
  aer: { name: "AER", write: (value) => `${(100 * value).toFixed(0)} %` },
  length: { name: "length", write: (value) => `${value} ${value === 1 ? "word" : "words"}` },
  entropy: { name: "entropy", write: (value) => `${value.toFixed(2)} nats` },
  score: { name: "log-probability per token", write: (value) => value.toFixed(2).replace("-", "−") },
};
const state = {
  order: data.sentences.map((_, at) => at), // of those in the list
  current: 0,
  upwards: true,
  unit: "words",
};

const sentence = () => data.sentences[state.current];

// --- the sentence ---------------------------------------------------------------------------------------------------

function showSentence() {
  shown.pinned = null;
  const { reference, readings, number } = sentence();
  element("reference").hidden = !reference;
  element("reference").querySelector("bdi").textContent = reference;
  element("sentence").setAttribute("aria-label", `Sentence ${number}`);
  // Gold links are between words, and so is their switch.
  element("gold-choice").hidden = state.unit !== "words" || !data.sentences.some(({ gold }) => gold);
  shown.views = [];
  element("readings").replaceChildren(...readings.map(showReading));
  shown.views.forEach(placeRibbons);
  showThreshold();
  showPlace();
}

/** Where the sentence stands in the list, and which ways one can go from there. */
function showPlace() {
  const place = state.order.indexOf(state.current);
  element("place").textContent = `${place + 1} / ${state.order.length}`;
  element("previous").disabled = place <= 0;
  element("next").disabled = place === state.order.length - 1;
  const list = element("list");
  for (const { firstChild } of list.children) firstChild.removeAttribute("aria-current");
  const shown = list.children[place];
  shown?.firstChild.setAttribute("aria-current", "true");
  // Only the list may scroll: on a phone it lies below the figure, which must stay in sight.
  if (!shown) return;
  const { offsetTop, offsetHeight } = shown;
  list.scrollTop = Math.min(Math.max(list.scrollTop, offsetTop + offsetHeight - list.clientHeight), offsetTop);
}

function showReading(reading, model) {
  const units = reading[state.unit] ?? reading.words;
  const [links, gold] = state.unit === "words" ? [reading.links, sentence().gold] : [[], null];
  const view = drawReading(units, { links }, gold, data.languages);
  shown.views.push(view);
  listen(view);
  const parts = [
    showFigures(reading.figures),
    view.figure,
    view.readout,
    ...(view.cells.flat().length ? [drawMatrix(view, gold, state.unit === "words")] : []),
  ];
  return make("section", { class: "reading" }, make("h2", { dir: "auto" }, data.models[model]), ...parts);
}

function showFigures(figures) {
  const known = Object.entries(FIGURES).filter(([key]) => figures[key] != null);
  const pairs = known.map(([key, { name, write }]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, write(figures[key]))),
  );
  return make("dl", { class: "figures" }, ...pairs);
}

function showThreshold() {
  const threshold = Number(element("threshold").value);
  element("threshold-value").textContent = threshold.toFixed(2);
  for (const view of shown.views) applyThreshold(view, threshold);
}

/** Go to a sentence of the list: the address names what is shown. */
function go(place) {
  if (state.order.length) location.hash = data.sentences[state.order[place]].number;
}

/** Show the sentence whose line the address names, as in page.html#12; the first of the list where it names none. */
function openAddress() {
  const named = data.sentences.findIndex(({ number }) => `#${number}` === location.hash);
  state.current = named >= 0 ? named : (state.order[0] ?? state.current);
  showSentence();
}

/** Narrow the list; another sentence is shown only if the present one is not among those that match. */
function searchList() {
  fillList();
  if (!state.order.includes(state.current)) go(0);
}

/** Sort, and show the first sentence, for which one sorts. */
function sortList() {
  fillList();
  go(0);
}

// --- the rest -------------------------------------------------------------------------------------------------------

function start() {
  const count = data.sentences.length;
  const languages = data.languages.every(Boolean) ? `${data.languages.join(" → ")}, ` : "";
  element("about").textContent = `${languages}${count} ${count === 1 ? "sentence" : "sentences"}`;
  element("readings").classList.toggle("two", data.models.length > 1);
  element("units").hidden = data.sentences.every(({ readings }) => readings.every(({ tokens }) => tokens === null));
  state.sortings = sortings();
  element("sort").append(...state.sortings.map(({ name }, at) => make("option", { value: at }, name)));
  listenToPage();
  fillList();
  openAddress();
}

function listenToPage() {
  element("previous").addEventListener("click", () => go(state.order.indexOf(state.current) - 1));
  element("next").addEventListener("click", () => go(state.order.indexOf(state.current) + 1));
  element("threshold").addEventListener("input", showThreshold);
  element("sort").addEventListener("change", sortList);
  element("search").addEventListener("input", searchList);
  addEventListener("hashchange", openAddress);
  element("direction").addEventListener("click", () => {
    state.upwards = !state.upwards;
    sortList();
  });
  element("units").addEventListener("change", (event) => {
    state.unit = event.target.value;
    showSentence();
  });
  element("gold").addEventListener("change", (event) =>
    document.body.classList.toggle("without-gold", !event.target.checked),
  );
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") pin(shown.views[0], null);
  });
  new ResizeObserver(() => shown.views.forEach(placeRibbons)).observe(element("readings"));
}

start();
