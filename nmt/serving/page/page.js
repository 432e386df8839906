// The page of the server: translate what is typed, choose or edit a translation, and draw how the model read it.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const TYPING = 200; // milliseconds without a key before a translation is asked for
const SETTLED = 1500; // and before it is read out

// --- columns: a model with its translation --------------------------------------------------------------------------

function makeColumn(number, model) {
  const root = element(`column-${number}`) ?? copyColumn(number);
  const part = (name) => root.querySelector(name);
  const column = { number, model, root, area: part("textarea"), status: part(".status"), details: part(".details") };
  Object.assign(column, { copy: part(".copy"), again: part(".again"), label: part("label"), typing: null, drawn: "" });
  Object.assign(column, { translation: new Errand(column, translate), score: new Errand(column, scoreOwn) });
  column.continuation = new Errand(column, continueOwn);
  column.area.readOnly = false;
  column.area.addEventListener("input", () => editTranslation(column));
  column.area.addEventListener("keydown", (event) => takeContinuation(column, event));
  for (const event of ["click", "keyup"]) column.area.addEventListener(event, () => followCaret(column.area));
  column.copy.addEventListener("click", () => copyTranslation(column));
  column.again.addEventListener("click", () => column.repeat());
  setModel(column, model);
  return column;
}

/** The second column is a copy of the first, as it came from the server. */
function copyColumn(number) {
  const root = element("column-0").cloneNode(true);
  root.id = `column-${number}`;
  const area = root.querySelector("textarea");
  area.id = `translation-${number}`;
  area.value = "";
  root.querySelector("label").htmlFor = area.id;
  root.querySelector(".details").replaceChildren();
  document.querySelector("main").append(root);
  return root;
}

function setModel(column, model) {
  Object.assign(column, { model, drawn: "" });
  column.area.lang = model.target;
  nameColumns();
}

function nameColumns() {
  for (const { label, model } of state.columns) {
    const language = data.languages[model.target];
    label.textContent = state.columns.length > 1 ? `${language}, ${model.name}` : language;
  }
}

/** What there is to say of a column; nothing if all is well. */
function say(column, text) {
  column.status.textContent = text;
  column.status.classList.remove("problem");
  column.again.hidden = true;
}

/** Say what went wrong; `repeat` does it once more when a person asks for it. */
function complain(column, text, repeat = null) {
  say(column, text);
  column.status.classList.add("problem");
  Object.assign(column, { repeat });
  column.again.hidden = !repeat;
  element("announcement").textContent = text;
}

/** Translate all lines by the model of a column; the current one with its alignment. */
async function translate(column, signal) {
  const current = currentLine().text;
  const rest = state.lines.map(({ text }) => text).filter((text) => text !== current);
  column.root.classList.add("waiting");
  try {
    await Promise.all([
      fetchLines(column.model, [current], column.model.has_attention, signal),
      fetchLines(column.model, rest, false, signal),
    ]);
  } finally {
    if (!signal.aborted) column.root.classList.remove("waiting");
  }
  const unknown = new Set(state.lines.flatMap(({ text }) => [...(recall(column.model, text)?.unknown ?? "")]));
  say(column, unknown.size ? `Characters that the model does not know: ${[...unknown].join(" ")}` : "");
  showTranslation(column);
}

function showTranslation(column) {
  const text = state.lines.map((line) => chosenOf(column, line)?.text ?? "").join("\n");
  if (column.area.value !== text) column.area.value = text;
  column.copy.hidden = !text.trim();
  showDetails(column);
  announce();
}

let announcing = null;

/** Read the translation of the line out, once nothing has changed for a while. */
function announce() {
  clearTimeout(announcing);
  announcing = setTimeout(() => {
    const texts = state.columns.map((column) => chosenOf(column, currentLine())?.text).filter(Boolean);
    element("announcement").textContent = texts.join(" / ");
  }, SETTLED);
}

async function copyTranslation(column) {
  await navigator.clipboard?.writeText(column.area.value);
  column.copy.textContent = "Copied";
  setTimeout(() => (column.copy.textContent = "Copy"), 1500);
}

// --- editing a translation ------------------------------------------------------------------------------------------

function editTranslation(column) {
  const typed = column.area.value.split("\n");
  clearTimeout(column.typing);
  if (typed.length !== state.lines.length) {
    complain(column, `Keep one line per line of the text: ${typed.length} for ${state.lines.length}.`);
    return;
  }
  say(column, "");
  typed.forEach((text, at) => reviseLine(column, state.lines[at], text));
  followCaret(column.area);
  showDetails(column);
  column.typing = setTimeout(() => {
    column.score.start();
    column.continuation.start();
  }, TYPING);
}

function reviseLine(column, line, text) {
  if (text === (chosenOf(column, line)?.text ?? "")) return;
  const rank = (recall(column.model, line.text) ?? []).findIndex((hypothesis) => hypothesis.text === text);
  line.choices.set(column.model.name, rank < 0 ? { own: { text } } : { rank });
}

/** Score what was typed for the current line. */
async function scoreOwn(column, signal) {
  const { text: source, choices } = currentLine();
  const { own } = choices.get(column.model.name) ?? {};
  if (!own || own.score !== undefined || !source.trim() || !own.text.trim()) return;
  const content = { q: source, translation: own.text, model: column.model.name };
  const { text, ...figures } = await (await ask("score", content, signal)).json();
  Object.assign(own, figures);
  say(column, "");
  showDetails(column);
}

/** Ask how a translation goes on that begins as what was typed up to the caret. */
async function continueOwn(column, signal) {
  const { text: source, choices } = currentLine();
  const { own } = choices.get(column.model.name) ?? {};
  const prefix = column.area.value.slice(0, column.area.selectionStart).split("\n").at(-1);
  if (!own || !source.trim() || !prefix.trim()) return;
  const content = { q: source, prefix, model: column.model.name, n_best: HYPOTHESES };
  const answer = await (await ask("translate", content, signal)).json();
  own.continuations = answer.lines[0].hypotheses.filter(({ text }) => text !== own.text);
  showDetails(column);
}

/** Tab takes the best continuation, if there is one. */
function takeContinuation(column, event) {
  const { own } = currentLine().choices.get(column.model.name) ?? {};
  if (event.key !== "Tab" || event.shiftKey || !own?.continuations?.length) return;
  event.preventDefault();
  const before = column.area.value.split("\n").slice(0, state.current);
  choose(column, { own: { text: own.continuations[0].text } });
  const end = [...before, own.continuations[0].text].join("\n").length;
  column.area.setSelectionRange(end, end);
}

// --- alternatives and the drawing -----------------------------------------------------------------------------------

/** Show what belongs to the current line, unless it is what is shown already. */
function showDetails(column) {
  const line = currentLine().text;
  const hypotheses = recall(column.model, line) ?? [];
  const chosen = chosenOf(column, currentLine());
  const continuations = (chosen?.continuations ?? []).map(({ text }) => text);
  const drawn = JSON.stringify([line, chosen?.text, chosen?.score, continuations, hypotheses.map(({ text }) => text), state.columns.length]);
  if (drawn === column.drawn && chosen?.alignment === column.alignment) return;
  Object.assign(column, { drawn, alignment: chosen?.alignment });
  const focused = column.details.contains(document.activeElement);
  column.view = chosen?.alignment ? viewOf(column, chosen.alignment) : null;
  const cards = hypotheses.length || chosen ? [drawAlternatives(column, hypotheses, chosen)] : [];
  if (column.view) cards.push(drawCard(column, chosen));
  else if (chosen && !column.model.has_attention) cards.push(make("p", { class: "faint" }, "This model has no attention to draw."));
  column.details.replaceChildren(...cards);
  if (focused) column.details.querySelector("input:checked")?.focus();
  showDrawings();
}

function viewOf(column, { source, target, weights, links }) {
  const thousandths = weights.map((row) => row.map((weight) => Math.max(Math.round(1000 * weight), weight > 0)));
  const languages = [column.model.source, column.model.target];
  const view = drawReading({ source, target, weights: thousandths }, { links }, null, languages);
  listen(view);
  return view;
}

function showDrawings() {
  shown.views = state.columns.map(({ view }) => view).filter(Boolean);
  shown.pinned = null;
  shown.views.forEach(placeRibbons);
  showThreshold();
  element("tools").hidden = !state.columns.some((column) => chosenOf(column, currentLine()));
  element("steps").hidden = state.lines.length < 2;
  element("place").textContent = `${state.current + 1} / ${state.lines.length}`;
  element("previous").disabled = state.current === 0;
  element("next").disabled = state.current === state.lines.length - 1;
  document.querySelector(".downloads").hidden = !shown.views.length;
}

function drawCard(column, chosen) {
  const { view } = column;
  const perToken = chosen.tokens ? figure(chosen.log_probability / chosen.tokens) : "–";
  const entries = [["score", figure(chosen.score)], ["log-probability", figure(chosen.log_probability)], ["per token", perToken]];
  const figures = entries.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  const words = make("div", { class: "words" }, view.figure, view.readout);
  const drawn = make("div", { class: "drawn" }, words);
  if (view.cells.flat().length) drawn.append(drawMatrix(view, null, true));
  const title = make("h2", {}, `Alignment${named(column)}`);
  return make("section", { class: "card" }, title, make("dl", { class: "figures" }, ...figures), drawn);
}

const named = (column) => (state.columns.length > 1 ? `, ${column.model.name}` : "");
const figure = (value) => (value == null ? "–" : value.toFixed(2).replace("-", "−"));

function choose(column, choice) {
  currentLine().choices.set(column.model.name, choice);
  showTranslation(column);
  column.score.start();
}

function showThreshold() {
  const threshold = Number(element("threshold").value);
  element("threshold-value").textContent = threshold.toFixed(2);
  for (const view of shown.views) applyThreshold(view, threshold);
}

// --- lines ----------------------------------------------------------------------------------------------------------

function readSource() {
  const { value } = element("q");
  replaceLines(value.split("\n"));
  state.current = Math.min(lineAt(element("q")), state.lines.length - 1);
  element("count").textContent = value ? `${value.length.toLocaleString("en")} / ${data.characters.toLocaleString("en")}` : "";
}

const lineAt = (area) => area.value.slice(0, area.selectionStart).split("\n").length - 1;

/** Draw the line that the caret is in. */
function followCaret(area) {
  if (lineAt(area) < state.lines.length) goToLine(lineAt(area));
}

function goToLine(at) {
  if (at === state.current) return;
  state.current = at;
  for (const column of state.columns) {
    showDetails(column);
    askAbout(column);
  }
}

/** Ask for what is not known yet of the text and its current line. */
function askAbout(column) {
  column.translation.start();
  column.score.start();
}

let typing = null;

function typeSource() {
  readSource();
  clearTimeout(typing);
  typing = setTimeout(() => state.columns.forEach(askAbout), TYPING);
}

// --- models ---------------------------------------------------------------------------------------------------------

const modelOf = (name) => data.models.find((model) => model.name === name);

/** Offer the models of the same direction for comparison. */
function offerComparison() {
  const model = modelOf(element("model").value);
  const others = data.models.filter((other) => other !== model && other.source === model.source && other.target === model.target);
  const select = element("compare");
  const before = select.value;
  select.replaceChildren(make("option", { value: "" }, "none"), ...others.map(({ name }) => make("option", { value: name }, name)));
  select.value = others.some(({ name }) => name === before) ? before : "";
  element("compare-choice").hidden = !others.length;
}

function chooseModels() {
  offerComparison();
  const models = [element("model").value, element("compare").value].filter(Boolean).map(modelOf);
  while (state.columns.length > models.length) {
    const { translation, score, continuation, root } = state.columns.pop();
    for (const errand of [translation, score, continuation]) errand.stop();
    root.remove();
  }
  models.forEach((model, number) => {
    if (!state.columns[number]) state.columns.push(makeColumn(number, model));
    else if (state.columns[number].model !== model) setModel(state.columns[number], model);
  });
  nameColumns();
  document.querySelector("main").classList.toggle("two", models.length > 1);
  const [{ source, target }] = models;
  element("q").lang = source;
  element("source-language").textContent = data.languages[source];
  document.title = `Translate ${data.languages[source]} to ${data.languages[target]}`;
  state.columns.forEach(askAbout);
}

// --- downloads ------------------------------------------------------------------------------------------------------

async function download(event) {
  const form = event.target.value;
  if (!form) return;
  const [one, other] = state.columns.map((column) => ({ column, text: chosenOf(column, currentLine())?.text }));
  const content = { q: currentLine().text, translation: one.text, model: one.column.model.name };
  if (other) Object.assign(content, { compared: other.column.model.name, compared_translation: other.text });
  event.target.disabled = true;
  try {
    const answer = await ask(`alignment.${form}`, content);
    const address = URL.createObjectURL(await answer.blob());
    make("a", { href: address, download: `alignment.${form}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    say(one.column, "");
  } catch (error) {
    complain(one.column, error.message);
  }
  event.target.disabled = false;
}

// --- the rest -------------------------------------------------------------------------------------------------------

function start() {
  element("form").addEventListener("submit", (event) => event.preventDefault());
  element("q").addEventListener("input", typeSource);
  for (const event of ["click", "keyup"]) element("q").addEventListener(event, () => followCaret(element("q")));
  for (const id of ["model", "compare"]) element(id).addEventListener("change", chooseModels);
  element("key")?.addEventListener("change", () => state.columns.forEach(askAbout));
  element("previous").addEventListener("click", () => goToLine(state.current - 1));
  element("next").addEventListener("click", () => goToLine(state.current + 1));
  element("threshold").addEventListener("input", showThreshold);
  document.querySelector(".downloads").addEventListener("click", download);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") pin(shown.views[0], null);
  });
  new ResizeObserver(() => shown.views.forEach(placeRibbons)).observe(document.querySelector("main"));
  readSource();
  chooseModels();
}

start();
