// The page of the server: translate what is typed, choose or edit a translation, and draw how the model read it.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const HYPOTHESES = 5;
const TYPING = 200; // milliseconds without a key before a translation is asked for
const SETTLED = 1500; // and before it is read out
const MOST_REMEMBERED = 500; // lines
const state = {
  lines: [""], // of the source
  current: 0, // the line that is drawn
  columns: [], // one per model that is shown
};
const remembered = new Map(); // hypotheses by model and line

// --- asking the server ----------------------------------------------------------------------------------------------

class Refusal extends Error {
  constructor(message, seconds) {
    super(message);
    this.seconds = seconds;
  }
}

async function ask(path, content, signal) {
  const headers = { "Content-Type": "application/json" };
  if (element("key")?.value) headers["X-API-Key"] = element("key").value;
  let answer;
  try {
    answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(content), signal });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refusal("The server does not answer.", 5);
  }
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({ error: `The server answers ${answer.status}.` }));
  throw new Refusal(error, Number(answer.headers.get("Retry-After")) || null);
}

const keyOf = (model, line) => `${model.id}\n${line}`;

function recall(model, line) {
  return remembered.get(keyOf(model, line));
}

function remember(model, line, hypotheses) {
  remembered.delete(keyOf(model, line));
  remembered.set(keyOf(model, line), hypotheses);
  if (remembered.size > MOST_REMEMBERED) remembered.delete(remembered.keys().next().value);
}

/** Ask for the hypotheses of lines, unless they are known. */
async function fetchLines(model, lines, alignment, signal) {
  const isKnown = (line) => recall(model, line) && (!alignment || recall(model, line)[0]?.alignment !== undefined);
  const missing = [...new Set(lines)].filter((line) => line.trim() && !isKnown(line));
  if (!missing.length) return;
  const content = { q: missing, model: model.id, n_best: HYPOTHESES, alignment };
  const answer = await (await ask("translate", content, signal)).json();
  answer.lines.forEach(([line], at) => {
    if (!alignment) for (const hypothesis of line?.hypotheses ?? []) delete hypothesis.alignment; // null: not asked for
    remember(model, missing[at], line?.hypotheses ?? []);
  });
}

// --- columns: a model with its translation --------------------------------------------------------------------------

/** A column holds, for each line, which hypothesis is chosen: its rank, or what was typed with its score. */
function makeColumn(number, model) {
  const root = element(`column-${number}`) ?? copyColumn(number);
  const part = (name) => root.querySelector(name);
  const column = { number, model, root, area: part("textarea"), status: part(".status"), details: part(".details") };
  Object.assign(column, { choices: [], copy: part(".copy"), label: part("label"), abort: null, timer: null, drawn: "" });
  column.area.readOnly = false;
  column.area.addEventListener("input", () => editTranslation(column));
  for (const event of ["click", "keyup"]) column.area.addEventListener(event, () => followCaret(column.area));
  column.copy.addEventListener("click", () => copyTranslation(column));
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
  Object.assign(column, { model, choices: [], drawn: "" });
  column.area.lang = model.target;
  nameColumns();
}

function nameColumns() {
  for (const { label, model } of state.columns) {
    const language = data.languages[model.target];
    label.textContent = state.columns.length > 1 ? `${language}, ${model.name}` : language;
  }
}

function say(column, text, isProblem = false) {
  column.status.textContent = text;
  column.status.classList.toggle("problem", isProblem);
  if (isProblem) element("announcement").textContent = text;
}

/** Translate all lines by the model of a column; the current one with its alignment. */
async function translate(column) {
  column.abort?.abort();
  clearTimeout(column.timer);
  const { signal } = (column.abort = new AbortController());
  column.root.classList.add("waiting");
  try {
    const rest = state.lines.filter((_, at) => at !== state.current);
    await Promise.all([
      fetchLines(column.model, [state.lines[state.current]], column.model.alignment, signal),
      fetchLines(column.model, rest, false, signal),
    ]);
    say(column, "");
    showTranslation(column);
  } catch (error) {
    if (error.name === "AbortError") return;
    tryAgain(column, error, translate);
  }
  column.root.classList.remove("waiting");
}

function tryAgain(column, error, action) {
  say(column, error.seconds ? `${error.message} Trying again in ${error.seconds} s.` : error.message, true);
  if (error.seconds) column.timer = setTimeout(() => action(column), 1000 * error.seconds);
}

/** What is chosen for a line: {text, ...figures}; null for a blank line, or one that is not translated yet. */
function chosenOf(column, at) {
  const choice = column.choices[at];
  if (choice?.own !== undefined && choice.line === state.lines[at]) return choice.own;
  const hypotheses = recall(column.model, state.lines[at]) ?? [];
  const rank = choice?.line === state.lines[at] ? choice.rank : 0;
  return hypotheses[rank] ?? hypotheses[0] ?? null;
}

function showTranslation(column) {
  const text = state.lines.map((_, at) => chosenOf(column, at)?.text ?? "").join("\n");
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
    const texts = state.columns.map((column) => chosenOf(column, state.current)?.text).filter(Boolean);
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
  clearTimeout(column.timer);
  if (typed.length !== state.lines.length) {
    say(column, `Keep one line per line of the text: ${typed.length} for ${state.lines.length}.`, true);
    return;
  }
  say(column, "");
  typed.forEach((text, at) => {
    if (text === (chosenOf(column, at)?.text ?? "")) return;
    const line = state.lines[at];
    const rank = (recall(column.model, line) ?? []).findIndex((hypothesis) => hypothesis.text === text);
    column.choices[at] = rank >= 0 ? { line, rank } : { line, own: { text } };
  });
  followCaret(column.area);
  showDetails(column);
  column.timer = setTimeout(() => scoreOwn(column), TYPING);
}

/** Score what was typed for the current line. */
async function scoreOwn(column) {
  const { own, line } = column.choices[state.current] ?? {};
  if (!own || own.score !== undefined || line !== state.lines[state.current] || !line.trim() || !own.text.trim()) return;
  column.abort?.abort();
  const { signal } = (column.abort = new AbortController());
  try {
    const content = { q: line, translation: own.text, model: column.model.id };
    const { text, ...figures } = await (await ask("score", content, signal)).json();
    Object.assign(own, figures);
    say(column, "");
    showDetails(column);
  } catch (error) {
    if (error.name !== "AbortError") tryAgain(column, error, scoreOwn);
  }
}

// --- alternatives and the drawing -----------------------------------------------------------------------------------

/** Show what belongs to the current line, unless it is what is shown already. */
function showDetails(column) {
  const line = state.lines[state.current];
  const hypotheses = recall(column.model, line) ?? [];
  const chosen = chosenOf(column, state.current);
  const drawn = JSON.stringify([line, chosen?.text, chosen?.score, hypotheses.map(({ text }) => text), state.columns.length]);
  if (drawn === column.drawn && chosen?.alignment === column.alignment) return;
  Object.assign(column, { drawn, alignment: chosen?.alignment });
  const focused = column.details.contains(document.activeElement);
  column.view = chosen?.alignment ? viewOf(column, chosen.alignment) : null;
  const cards = hypotheses.length || chosen ? [drawAlternatives(column, hypotheses, chosen)] : [];
  if (column.view) cards.push(drawCard(column, chosen));
  else if (chosen && !column.model.alignment) cards.push(make("p", { class: "faint" }, "This model has no attention to draw."));
  column.details.replaceChildren(...cards);
  if (focused) column.details.querySelector("input:checked")?.focus();
  showDrawings();
}

function viewOf(column, { source, target, weights, links }) {
  const thousandths = weights.map((row) => row.map((weight) => Math.round(1000 * weight)));
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
  element("tools").hidden = !state.columns.some((column) => chosenOf(column, state.current));
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
  if (view.cells.flat().length) {
    const scroll = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Matrix" }, view.table);
    drawn.append(make("div", { class: "matrix" }, scroll, drawKey(null, true)));
  }
  const title = make("h2", {}, `Alignment${named(column)}`);
  return make("section", { class: "card" }, title, make("dl", { class: "figures" }, ...figures), drawn);
}

const named = (column) => (state.columns.length > 1 ? `, ${column.model.name}` : "");
const figure = (value) => (value == null ? "–" : value.toFixed(2).replace("-", "−"));

function drawAlternatives(column, hypotheses, chosen) {
  const best = hypotheses[0]?.text.split(" ") ?? [];
  const rows = hypotheses.map((hypothesis, rank) => drawAlternative(column, hypothesis, hypothesis === chosen, { rank }, best));
  if (chosen && !hypotheses.includes(chosen)) rows.push(drawAlternative(column, chosen, true, { own: chosen }, best));
  const title = make("h2", { id: `alternatives-${column.number}` }, `Alternatives${named(column)}`);
  const list = make("ol", { class: "alternatives", role: "radiogroup", "aria-labelledby": title.id }, ...rows);
  return make("section", { class: "card" }, title, list);
}

function drawAlternative(column, hypothesis, checked, choice, best) {
  const input = make("input", { type: "radio", name: `alternative-${column.number}` });
  input.checked = checked;
  input.addEventListener("change", () => choose(column, choice));
  const isOwn = choice.own !== undefined;
  const said = make("span", { class: "said", lang: column.model.target, dir: "auto" }, ...differing(hypothesis.text, best));
  const note = isOwn ? [make("span", { class: "own faint" }, "yours")] : [];
  const score = make("span", { class: "score" }, ...note, " ", hypothesis.score === undefined ? "…" : figure(hypothesis.score));
  score.title = "Score: the higher, the better";
  return make("li", { role: "presentation" }, make("label", {}, input, said, score));
}

/** The words of a text, those marked that the best translation does not have in this order. */
function differing(text, best) {
  const words = text.split(" ");
  const common = commonWords(words, best);
  return words.flatMap((word, at) => [...(at ? [" "] : []), common.has(at) ? word : make("mark", {}, word)]);
}

/** Places of a longest common subsequence of words. */
function commonWords(words, others) {
  if (words.length * others.length > 40_000) return new Set(words.keys());
  const lengths = Array.from({ length: words.length + 1 }, () => new Array(others.length + 1).fill(0));
  for (let at = words.length - 1; at >= 0; at--) {
    for (let to = others.length - 1; to >= 0; to--) {
      const either = Math.max(lengths[at + 1][to], lengths[at][to + 1]);
      lengths[at][to] = words[at] === others[to] ? lengths[at + 1][to + 1] + 1 : either;
    }
  }
  const places = new Set();
  for (let at = 0, to = 0; at < words.length && to < others.length; ) {
    if (words[at] === others[to]) places.add(at++) && to++;
    else if (lengths[at + 1][to] >= lengths[at][to + 1]) at++;
    else to++;
  }
  return places;
}

function choose(column, choice) {
  column.choices[state.current] = { line: state.lines[state.current], ...choice };
  showTranslation(column);
}

function showThreshold() {
  const threshold = Number(element("threshold").value);
  element("threshold-value").textContent = threshold.toFixed(2);
  for (const view of shown.views) applyThreshold(view, threshold);
}

// --- lines ----------------------------------------------------------------------------------------------------------

function readSource() {
  const { value } = element("q");
  state.lines = value.split("\n");
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
    if (column.choices[at]?.own) {
      showDetails(column);
      scoreOwn(column);
    } else translate(column);
  }
}

let typing = null;

function typeSource() {
  readSource();
  clearTimeout(typing);
  typing = setTimeout(() => state.columns.forEach(translate), TYPING);
}

// --- models ---------------------------------------------------------------------------------------------------------

const modelOf = (id) => data.models.find((model) => model.id === id);

/** Offer the models of the same direction for comparison. */
function offerComparison() {
  const model = modelOf(element("model").value);
  const others = data.models.filter((other) => other !== model && other.source === model.source && other.target === model.target);
  const select = element("compare");
  const before = select.value;
  select.replaceChildren(make("option", { value: "" }, "none"), ...others.map(({ id, name }) => make("option", { value: id }, name)));
  select.value = others.some(({ id }) => id === before) ? before : "";
  element("compare-choice").hidden = !others.length;
}

function chooseModels() {
  offerComparison();
  const models = [element("model").value, element("compare").value].filter(Boolean).map(modelOf);
  while (state.columns.length > models.length) {
    const { abort, root } = state.columns.pop();
    abort?.abort();
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
  state.columns.forEach(translate);
}

// --- downloads ------------------------------------------------------------------------------------------------------

async function download(event) {
  const form = event.target.value;
  if (!form) return;
  const [one, other] = state.columns.map((column) => ({ column, text: chosenOf(column, state.current)?.text }));
  const content = { q: state.lines[state.current], translation: one.text, model: one.column.model.id };
  if (other) Object.assign(content, { compared: other.column.model.id, compared_translation: other.text });
  event.target.disabled = true;
  try {
    const answer = await ask(`alignment.${form}`, content);
    const address = URL.createObjectURL(await answer.blob());
    make("a", { href: address, download: `alignment.${form}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    say(one.column, "");
  } catch (error) {
    say(one.column, error.message, true);
  }
  event.target.disabled = false;
}

// --- the rest -------------------------------------------------------------------------------------------------------

function start() {
  element("form").addEventListener("submit", (event) => event.preventDefault());
  element("q").addEventListener("input", typeSource);
  for (const event of ["click", "keyup"]) element("q").addEventListener(event, () => followCaret(element("q")));
  for (const id of ["model", "compare"]) element(id).addEventListener("change", chooseModels);
  element("key")?.addEventListener("change", () => state.columns.forEach(translate));
  element("previous").addEventListener("click", () => goToLine(state.current - 1));
  element("next").addEventListener("click", () => goToLine(state.current + 1));
  element("threshold").addEventListener("input", showThreshold);
  document.querySelector(".downloads").addEventListener("click", download);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") pin(shown.views[0], null);
  });
  element("theme").hidden = false;
  listenToTheme(element("theme"));
  new ResizeObserver(() => shown.views.forEach(placeRibbons)).observe(document.querySelector("main"));
  readSource();
  chooseModels();
}

start();
