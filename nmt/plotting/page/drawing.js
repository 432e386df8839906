// How one model read one sentence: ribbons and matrix. Text of the corpus only ever enters as text nodes.

const SVG = "http://www.w3.org/2000/svg";
const LEAST = 0.01; // a ribbon below it would be a hair
const NUMBERED_UP_TO = 12; // words; in larger matrices figures in the cells are noise
const HINT = "Point at a word or a ribbon, or tap it to keep it.";
const SIDES = ["source", "target"];
const OPPOSITE = { source: "target", target: "source" };

function make(tag, attributes = {}, ...children) {
  const element = tag === "svg" || tag === "path" ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A view holds what is drawn, and the words and weights that it was drawn from. */
function drawReading(units, reading, gold, languages) {
  const view = { units, links: new Set(reading.links.map(String)), gold, focus: null };
  view.words = Object.fromEntries(
    SIDES.map((side) => [side, units[side].map((text, at) => drawWord(view, side, text, at))]),
  );
  view.rows = Object.fromEntries(SIDES.map((side, at) => [side, drawRow(view, side, languages[at])]));
  view.svg = make("svg", { "aria-hidden": "true" });
  view.ribbons = drawRibbons(view);
  view.figure = make("div", { class: "ribbons" }, view.rows.source, view.svg, view.rows.target);
  view.readout = make("p", { class: "readout faint" }, HINT);
  view.table = drawTable(view, languages);
  return view;
}

function weightOf(view, source, target) {
  return view.units.weights[target][source] / 1000;
}

function drawWord(view, side, text, at) {
  const about = `${text}: ${describe(view, side, at) || "no weight"}`;
  return make(
    "button",
    { type: "button", class: "word", dir: "auto", "data-at": at, "aria-label": about },
    text,
  );
}

function drawRow(view, side, language) {
  const words = view.words[side];
  const name = side === "source" ? "Source words" : "Target words";
  const shown = words.length ? words : [make("span", { class: "word empty" }, "no words")];
  const row = make(
    "div",
    { class: `row ${side}`, role: "group", dir: directionOf(view.units[side]), "aria-label": name, "data-side": side },
    ...shown,
  );
  if (language) row.lang = language;
  return row;
}

function drawRibbons(view) {
  const ribbons = [];
  view.units.weights.forEach((row, target) =>
    row.forEach((thousandths, source) => {
      if (thousandths >= 1000 * LEAST) ribbons.push(drawRibbon(source, target, thousandths / 1000));
    }),
  );
  ribbons.sort((first, second) => first.weight - second.weight); // the strongest lie on top
  for (const kind of ["possible", "sure"]) {
    for (const [source, target] of view.gold?.[kind] ?? []) ribbons.push({ ...drawRibbon(source, target, 0), kind });
  }
  for (const { path, kind } of ribbons) if (kind) path.setAttribute("class", `gold ${kind}`);
  view.svg.append(...ribbons.map(({ path }) => path));
  return ribbons;
}

function drawRibbon(source, target, weight) {
  const path = make("path", { class: "ribbon", "data-source": source, "data-target": target });
  if (weight) {
    path.style.strokeWidth = `${(1 + 11 * weight).toFixed(1)}px`;
    path.style.opacity = (0.14 + 0.7 * weight).toFixed(2);
  }
  return { path, source, target, weight };
}

function drawTable(view, languages) {
  const { source, target } = view.units;
  const many = Math.max(source.length, target.length) > NUMBERED_UP_TO;
  const head = source.map((text, at) =>
    make("th", { scope: "col", "data-source": at }, make("span", { dir: "auto" }, text)),
  );
  const language = languages[1] && { lang: languages[1] };
  const rows = target.map((text, at) => {
    const label = make("th", { scope: "row", dir: "auto", title: text, "data-target": at, ...language }, text);
    return make("tr", {}, label, ...source.map((_, from) => drawCell(view, from, at)));
  });
  const caption = make(
    "caption",
    { class: "unseen" },
    "Weight of each source word (column) for each target word (row)",
  );
  const header = make("thead", {}, make("tr", {}, make("th", { "aria-hidden": "true" }), ...head));
  if (languages[0]) header.lang = languages[0];
  // Columns run the way the source is read; the caption is ours and must not decide it.
  const direction = { class: many ? "many" : "", dir: directionOf(source) };
  const table = make("table", direction, caption, header, make("tbody", {}, ...rows));
  view.cells = rows.map((row) => [...row.querySelectorAll("td")]);
  return table;
}

/** The matrix, which scrolls sideways where it is wider than the page, with what its marks mean. */
function drawMatrix(view, gold, linked) {
  const scroll = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Matrix" }, view.table);
  const entries = ["target words down, source words along"];
  if (linked) entries.push("dot: the strongest link");
  if (gold) entries.push("orange: gold link, dashed if only possible");
  const key = make("p", { class: "key" }, ...entries.map((text) => make("span", {}, text)));
  return make("div", { class: "matrix" }, scroll, key);
}

function drawCell(view, source, target) {
  const weight = weightOf(view, source, target);
  const cell = make(
    "td",
    { "data-source": source, "data-target": target },
    make("span", {}, weight >= 0.1 ? weight.toFixed(2) : ""),
  );
  cell.style.setProperty("--weight", weight);
  cell.classList.toggle("zero", weight === 0);
  cell.classList.toggle("half", weight > 0.52);
  cell.classList.toggle("strong", weight > 0.72);
  cell.classList.toggle("link", view.links.has(`${source},${target}`));
  for (const kind of ["possible", "sure"]) {
    const linked = (view.gold?.[kind] ?? []).some(([from, to]) => from === source && to === target);
    cell.classList.toggle(kind, linked);
  }
  return cell;
}

/** The browser's own judgment of a direction: `dir="auto"` on a parent passes over children that have their own. */
function directionOf(texts) {
  const probe = make("div", { dir: "auto", hidden: "" }, texts.join(" "));
  document.body.append(probe);
  const { direction } = getComputedStyle(probe);
  probe.remove();
  return direction;
}

/** The partners of a word by weight, in words. */
function describe(view, side, at) {
  const partners = view.units[OPPOSITE[side]].map((text, partner) => {
    const [source, target] = side === "source" ? [at, partner] : [partner, at];
    return { text, weight: weightOf(view, source, target) };
  });
  partners.sort((first, second) => second.weight - first.weight);
  const strongest = partners.filter(({ weight }) => weight >= 0.005).slice(0, 5);
  return strongest.map(({ text, weight }) => `${text} ${weight.toFixed(2)}`).join(", ");
}

function applyThreshold(view, threshold) {
  for (const { path, weight, kind } of view.ribbons) if (!kind) path.toggleAttribute("hidden", weight < threshold);
  for (const cell of view.cells.flat()) {
    cell.classList.toggle("below", Number(cell.style.getPropertyValue("--weight")) < threshold);
  }
}

/** Light up what belongs to a word or to a pair of them; `focus` is null or {source, target}, either left out. */
function highlight(view, focus) {
  const touches = (source, target) => (focus.source ?? source) === source && (focus.target ?? target) === target;
  const dim = (element, source, target) => element.classList.toggle("dim", focus !== null && !touches(source, target));
  for (const { path, source, target } of view.ribbons) dim(path, source, target);
  view.cells.forEach((row, target) => row.forEach((cell, source) => dim(cell, source, target)));
  for (const side of SIDES) view.words[side].forEach((word, at) => tint(view, word, side, at, focus));
  for (const head of view.table.querySelectorAll("th")) {
    const isChosen = SIDES.some((side) => focus?.[side] !== undefined && head.dataset[side] === String(focus[side]));
    head.classList.toggle("chosen", isChosen);
  }
  view.readout.textContent = focus ? readout(view, focus) : HINT;
}

function tint(view, word, side, at, focus) {
  const partner = focus?.[OPPOSITE[side]];
  const alone = partner !== undefined && focus[side] === undefined;
  const weight = alone ? (side === "source" ? weightOf(view, at, partner) : weightOf(view, partner, at)) : 0;
  word.style.setProperty("--weight", weight);
  word.classList.toggle("chosen", focus?.[side] === at);
}

function readout(view, { source, target }) {
  const { units } = view;
  // Isolates keep a word of the other direction from rearranging the line.
  const quote = (text) => `\u2068${text}\u2069`;
  if (source !== undefined && target !== undefined) {
    const weight = weightOf(view, source, target).toFixed(3);
    return `${quote(units.target[target])} ← ${quote(units.source[source])} ${weight}`;
  }
  const side = source === undefined ? "target" : "source";
  const at = source ?? target;
  const verb = side === "target" ? "←" : "→";
  return `${quote(units[side][at])} ${verb} ${describe(view, side, at) || "no weight"}`;
}
