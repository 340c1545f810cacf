// A response as threads: it runs down, forks into the paths of a block, and joins in the summary.

const right = (found) =>
  found === true
    ? el('span', { class: 'right' }, ' ✓ right')
    : found === false
      ? el('span', { class: 'wrong' }, ' ✗ not right')
      : null;

const threads = (pieces) =>
  pieces.map((piece) => (piece.paths ? block(piece) : el('div', { class: 'text' }, piece.text)));

function block(piece) {
  const columns = `grid-template-columns: repeat(${Math.max(1, piece.paths.length)}, minmax(10rem, 1fr))`;
  const lane = (path, i) =>
    el(
      'div',
      { class: 'lane', style: `border-top-color: ${colour(i)}` },
      el('h4', {}, `Path ${i + 1}`, right(path.right)),
      threads(path.pieces),
    );
  const open = piece.paths.length ? fork(piece.paths.length, false) : null;
  const summary = piece.summary && [
    fork(piece.paths.length, true),
    el('div', { class: 'summary' }, el('h4', {}, 'Summary'), threads(piece.summary)),
  ];
  const name = `${piece.paths.length} parallel paths`;
  return el(
    'div',
    { class: 'block', role: 'group', 'aria-label': name },
    open,
    el('div', { class: 'lanes', style: columns }, piece.paths.map(lane)),
    summary,
  );
}

// The lines from a thread to its paths, or from the paths back into one thread.
function fork(count, joins) {
  const [start, end] = joins ? [1, 0] : [0, 1];
  const path = (i) => {
    const [from, to] = [count / 2, i + 0.5];
    const d = `M${from} ${start}C${from} 0.5 ${to} 0.5 ${to} ${end}`;
    return svg('path', { d, stroke: colour(i), 'stroke-dasharray': dash(i) });
  };
  const paths = Array.from({ length: count }, (_, i) => path(i));
  return svg(
    'svg',
    { class: 'fork', viewBox: `0 0 ${count} 1`, preserveAspectRatio: 'none', 'aria-hidden': true },
    paths,
  );
}
