// The hypotheses of the current line, of which one is chosen.

function drawAlternatives(column, hypotheses, chosen) {
  const best = new Set(hypotheses[0]?.text.split(" "));
  const rows = hypotheses.map((hypothesis, rank) => drawAlternative(column, hypothesis, hypothesis === chosen, { rank }, best));
  if (chosen && !hypotheses.includes(chosen)) rows.push(drawAlternative(column, chosen, true, { own: chosen }, best));
  for (const continuation of chosen?.continuations ?? []) {
    const { text, score } = continuation;
    rows.push(drawAlternative(column, { text, score }, false, { own: { text } }, best, goingOn(continuation)));
  }
  const title = make("h2", { id: `alternatives-${column.number}` }, `Alternatives${named(column)}`);
  const list = make("ol", { class: "alternatives", role: "radiogroup", "aria-labelledby": title.id }, ...rows);
  return make("section", { class: "card" }, title, list);
}

/** The next word and its probability, if there is one. */
function goingOn({ next_word: word, next_word_probability: probability }) {
  if (probability === undefined) return "goes on";
  return `goes on, ${word} ${probability < 0.005 ? "below 1" : Math.round(100 * probability)} %`;
}

function drawAlternative(column, hypothesis, checked, choice, best, said = choice.own && "yours") {
  const input = make("input", { type: "radio", name: `alternative-${column.number}` });
  input.checked = checked;
  input.addEventListener("change", () => choose(column, choice));
  const words = make("span", { class: "said", lang: column.model.target, dir: "auto" }, ...differing(hypothesis.text, best));
  const note = said ? [make("span", { class: "own faint" }, said)] : [];
  const score = make("span", { class: "score" }, ...note, " ", hypothesis.score === undefined ? "…" : figure(hypothesis.score));
  score.title = "Score: the higher, the better";
  return make("li", { role: "presentation" }, make("label", {}, input, words, score));
}

/** The words of a text, those marked that the best translation does not have. */
function differing(text, best) {
  return text.split(" ").flatMap((word, at) => [...(at ? [" "] : []), best.has(word) ? word : make("mark", {}, word)]);
}
