// The lines of the text, and what a person has chosen for them.
//
// A line is {text, choices}: by model, {rank} of a hypothesis, or {own}, a person's own words with their figures.

const state = {
  lines: [makeLine("")], // of the source
  current: 0, // the line that is drawn
  columns: [], // one per model that is shown
};
const former = new Map(); // lines with choices that have left the text, by text: they may come back, here or elsewhere

function makeLine(text) {
  return { text, choices: new Map() };
}

const currentLine = () => state.lines[state.current];

/** Read all lines anew. A line keeps its choices, wherever it moves. */
function replaceLines(texts) {
  const before = state.lines;
  const start = commonLength(before, texts);
  const end = commonLength(before.slice(start).reverse(), texts.slice(start).reverse());
  for (const line of before.slice(start, before.length - end)) if (line.choices.size) keepFormer(line);
  const between = texts.slice(start, texts.length - end).map(takeLine);
  state.lines = [...before.slice(0, start), ...between, ...before.slice(before.length - end)];
}

/** How many lines from the first one on have these texts. */
function commonLength(lines, texts) {
  const at = lines.findIndex((line, place) => line.text !== texts[place]);
  return at < 0 ? lines.length : at;
}

function keepFormer(line) {
  former.set(line.text, line);
  if (former.size > MOST_REMEMBERED) former.delete(former.keys().next().value);
}

function takeLine(text) {
  const line = former.get(text) ?? makeLine(text);
  former.delete(text);
  return line;
}

/** What is chosen for a line: {text, ...figures}; null for a blank line, or one that is not translated yet. */
function chosenOf({ model }, line) {
  const { own, rank = 0 } = line.choices.get(model.name) ?? {};
  const hypotheses = recall(model, line.text) ?? [];
  return own ?? hypotheses[rank] ?? hypotheses[0] ?? null;
}
