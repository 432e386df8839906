// The lines of the text, and what a person has chosen for them.
//
// A line is {text, choices}: by model, {rank} of a hypothesis, or {own}, a person's own words with their figures.

const state = {
  lines: [makeLine("")], // of the source
  current: 0, // the line that is drawn
  columns: [], // one per model that is shown
};

function makeLine(text) {
  return { text, choices: new Map() };
}

const currentLine = () => state.lines[state.current];

/** Read all lines anew. Those before and after the ones that have changed keep their choices. */
function replaceLines(texts) {
  const before = state.lines;
  const start = commonLength(before, texts);
  const end = commonLength(before.slice(start).reverse(), texts.slice(start).reverse());
  const between = texts.slice(start, texts.length - end).map(makeLine);
  state.lines = [...before.slice(0, start), ...between, ...before.slice(before.length - end)];
}

/** How many lines from the first one on have these texts. */
function commonLength(lines, texts) {
  const at = lines.findIndex((line, place) => line.text !== texts[place]);
  return at < 0 ? lines.length : at;
}

/** What is chosen for a line: {text, ...figures}; null for a blank line, or one that is not translated yet. */
function chosenOf({ model }, line) {
  const { own, rank = 0 } = line.choices.get(model.name) ?? {};
  const hypotheses = recall(model, line.text) ?? [];
  return own ?? hypotheses[rank] ?? hypotheses[0] ?? null;
}
