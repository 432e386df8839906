// Where words and ribbons stand: in two rows if these fit, else in two columns.

/** Place the words, then draw every ribbon from its source to its target. */
function placeRibbons(view) {
  view.figure.className = "ribbons across measured";
  const fits = SIDES.every((side) => view.rows[side].scrollWidth <= view.rows[side].clientWidth);
  view.figure.className = fits ? "ribbons across" : "ribbons down";
  const box = view.svg.getBoundingClientRect();
  const [sources, targets] = SIDES.map((side) => view.words[side].map((word) => word.getBoundingClientRect()));
  const draw = fits ? pathDown : pathAcross;
  for (const { path, source, target } of view.ribbons) path.setAttribute("d", draw(sources[source], targets[target], box));
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
