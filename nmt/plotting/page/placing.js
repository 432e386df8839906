// Where words and ribbons stand: in two rows if these fit; if not, in bands of two rows or in two columns.

const BETWEEN_WORDS = 5; // pixels
const BETWEEN_BANDS = 10;
const ROOMY = { name: "", betweenRows: 88 }; // for the ribbons
const COMPACT = { name: "compact", betweenRows: 40 };
const MOST_ROOMY = 5; // bands; where there are more, as on a phone, all is smaller

/** Place the words, then draw every ribbon from its source to its target. */
function placeRibbons(view) {
  layOut(view, "across measured");
  const fits = SIDES.every((side) => view.rows[side].scrollWidth <= view.rows[side].clientWidth);
  if (fits) layOut(view, "across");
  else placeBands(view);
  const box = view.svg.getBoundingClientRect();
  const [sources, targets] = SIDES.map((side) => view.words[side].map((word) => word.getBoundingClientRect()));
  const draw = view.figure.classList.contains("down") ? pathAcross : pathDown;
  for (const { path, source, target } of view.ribbons) path.setAttribute("d", draw(sources[source], targets[target], box));
}

function layOut(view, layout) {
  view.figure.className = `ribbons ${layout}`;
  view.figure.style.height = "";
}

const tenths = (value) => Math.round(10 * value) / 10;

/** From the lower edge of a source word to the upper edge of a target word. */
function pathDown(from, to, box) {
  const [start, end] = [from, to].map(({ x, width }) => tenths(x + width / 2 - box.x));
  const [top, bottom] = [tenths(from.bottom - box.y), tenths(to.top - box.y)];
  const middle = tenths((top + bottom) / 2);
  return `M${start},${top} C${start},${middle} ${end},${middle} ${end},${bottom}`;
}

/** From the left edge of the figure to its right one. */
function pathAcross(from, to, box) {
  const [start, end] = [from, to].map(({ y, height }) => tenths(y + height / 2 - box.y));
  const middle = tenths(box.width / 2);
  return `M0,${start} C${middle},${start} ${middle},${end} ${tenths(box.width)},${end}`;
}

// --- bands ----------------------------------------------------------------------------------------------------------

/** Place words in bands, like lines of a text, unless two columns are lower. */
function placeBands(view, form = ROOMY) {
  layOut(view, `down ${form.name}`);
  const columns = view.figure.offsetHeight;
  layOut(view, `bands ${form.name}`);
  const width = view.figure.clientWidth;
  const widths = Object.fromEntries(
    SIDES.map((side) => [side, view.words[side].map((word) => word.offsetWidth + BETWEEN_WORDS)]),
  );
  const bands = balanceBands(view.units.weights, widths, width + BETWEEN_WORDS);
  if (form === ROOMY && bands.length > MOST_ROOMY) return placeBands(view, COMPACT);
  const step = view.figure.querySelector(".word").offsetHeight + form.betweenRows; // from one row to the other
  const height = 2 * step - form.betweenRows + BETWEEN_BANDS;
  if (bands.length * height - BETWEEN_BANDS >= columns) return layOut(view, `down ${form.name}`);
  view.figure.style.height = `${bands.length * height - BETWEEN_BANDS}px`;
  bands.forEach((band, number) =>
    SIDES.forEach((side, at) => placeRow(view, side, band[side], widths[side], width, number * height + at * step)),
  );
}

/** As few bands as there can be, and these as narrow as they can be, so that no word is left over for the last one. */
function balanceBands(weights, widths, width) {
  let best = splitBands(weights, widths, width);
  for (let share = 0.95; share > 0.5; share -= 0.05) {
    const bands = splitBands(weights, widths, share * width);
    if (bands.length > best.length) break;
    best = bands;
  }
  return best;
}

/** The words of each band, {source: [from, to], target}: as many as fit of one side, and what these read, of the other. */
function splitBands(weights, widths, width) {
  const bands = [];
  let [source, target] = [0, 0];
  while (source < widths.source.length || target < widths.target.length) {
    const most = [fitting(widths.source, source, width), fitting(widths.target, target, width)];
    const ends = [most, ...between(source, most[0]).map((to) => [to, most[1]]), ...between(target, most[1]).map((to) => [most[0], to])];
    const losses = ends.map((end) => weightLeaving(weights, [source, target], end));
    const [nextSource, nextTarget] = ends[losses.indexOf(Math.min(...losses))];
    bands.push({ source: [source, nextSource], target: [target, nextTarget] });
    [source, target] = [nextSource, nextTarget];
  }
  return bands;
}

const between = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);

/** Where a row ends that begins at a word; it has one word at least. */
function fitting(widths, from, width) {
  let [at, left] = [from, width];
  while (at < widths.length && (at === from || widths[at] <= left)) left -= widths[at++];
  return at;
}

/** The weight between words of a band and those of later ones. */
function weightLeaving(weights, [source, target], [sourceEnd, targetEnd]) {
  return sumOf(
    weights.slice(target).map((row, at) => {
      return sumOf(target + at < targetEnd ? row.slice(sourceEnd) : row.slice(source, sourceEnd));
    }),
  );
}

/** Words in the middle of a row, in the direction of their side, whichever way each of them runs. */
function placeRow(view, side, [from, to], widths, width, top) {
  const edge = getComputedStyle(view.rows[side]).direction === "rtl" ? "right" : "left";
  let start = Math.max((width - sumOf(widths.slice(from, to)) + BETWEEN_WORDS) / 2, 0);
  for (let at = from; at < to; at++) {
    Object.assign(view.words[side][at].style, { left: "", right: "", [edge]: `${start}px`, top: `${top}px` });
    start += widths[at];
  }
}

const sumOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
