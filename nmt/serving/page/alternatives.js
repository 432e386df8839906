// The hypotheses of the current line, of which one is chosen.

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
