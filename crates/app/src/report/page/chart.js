// One chart: lines over steps, with a cursor for mouse and keyboard.
//
// series: [{label, colour, dash, x, y, low?, high?, bars?}], where low and high are drawn as a band, or as bars if asked.
// options: {id, title, about, unit: 'share' | 'number', log, marks: [{x, colour, label}], smooth: 0..1, from, to}

const WIDTH = 420, HEIGHT = 200, LEFT = 46, RIGHT = 16, TOP = 8, BOTTOM = 22;

function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(Math.abs(at) < step * 1e-6 ? 0 : at);
  return found;
}

const powers = (low, high) => {
  const found = [];
  for (let at = Math.ceil(low - 1e-9); at <= high + 1e-9; at++) found.push(at);
  return found.length ? found : [low, high];
};

// Exponentially smoothed from the left, without a pull towards zero at its start.
function smoothed(y, weight) {
  let sum = 0, total = 0;
  return y.map((value) => {
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return sum / total;
  });
}

function domain(series, options) {
  const values = series.flatMap((one) => one.y.concat(one.low || [], one.high || []));
  let low = Math.min(...values), high = Math.max(...values);
  if (options.log) {
    const positive = values.filter((value) => value > 0);
    if (!positive.length) return null;
    low = Math.floor(Math.log10(Math.min(...positive)));
    return [low, Math.max(Math.ceil(Math.log10(Math.max(...positive))), low + 1)];
  }
  if (options.unit === 'share') return low >= 0 && high <= 1 ? [0, high > 0.5 ? 1 : Math.max(high * 1.15, 0.02)] : [low, high];
  if (low > 0 && low < 0.5 * high) low = 0;
  const space = (high - low || Math.abs(high) || 1) * 0.06;
  return [low === 0 ? 0 : low - space, high + space];
}

// What a logarithm is defined for.
function positive(one) {
  const kept = one.y.map((value, i) => i).filter((i) => one.y[i] > 0);
  const of = (values) => values && kept.map((i) => values[i]);
  return { ...one, x: of(one.x), y: of(one.y), low: of(one.low), high: of(one.high) };
}

function chart(series, options) {
  if (options.log) series = series.map(positive);
  series = series.filter((one) => one.x.length);
  const range = series.length && domain(series, options);
  if (!range) return null;
  const xs = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  const first = Math.min(xs[0], options.from ?? xs[0]), last = Math.max(xs[xs.length - 1], options.to ?? 0, first + 1e-9);
  const right = (x) => LEFT + ((x - first) / (last - first)) * (WIDTH - LEFT - RIGHT);
  const scaled = options.log ? (y) => Math.log10(Math.max(y, 10 ** range[0])) : (y) => y;
  const up = (y) => TOP + (1 - (scaled(y) - range[0]) / (range[1] - range[0])) * (HEIGHT - TOP - BOTTOM);
  const write = options.unit === 'share' ? (y) => percent(y) : number;
  const label = (y) => (options.log ? `1e${y}` : options.unit === 'share' ? `${+(100 * y).toFixed(1)} %` : number(y));

  const canvas = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': true });
  for (const y of options.log ? powers(...range) : ticks(...range, 4)) {
    const at = up(options.log ? 10 ** y : y);
    canvas.append(svg('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }));
    canvas.append(svg('text', { x: LEFT - 6, y: at + 4, 'text-anchor': 'end' }, label(y)));
  }
  for (const x of ticks(first, last, 5).filter(Number.isInteger)) {
    const anchor = right(x) + 24 > WIDTH ? { x: WIDTH - 2, 'text-anchor': 'end' } : { x: right(x), 'text-anchor': 'middle' };
    canvas.append(svg('text', { ...anchor, y: HEIGHT - 6 }, x.toLocaleString('en')));
  }
  for (const mark of options.marks || []) {
    if (mark.x <= first || mark.x >= last) continue;
    const line = { class: 'mark', x1: right(mark.x), x2: right(mark.x), y1: TOP, y2: HEIGHT - BOTTOM, stroke: mark.colour, 'stroke-width': 1.5 };
    canvas.append(svg('line', line, svg('title', {}, mark.label)));
  }
  const line = (x, y) => x.map((at, i) => `${i ? 'L' : 'M'}${right(at).toFixed(1)} ${up(y[i]).toFixed(1)}`).join('');
  for (const one of series) {
    const stroke = { fill: 'none', stroke: one.colour, 'stroke-width': 2, 'stroke-linejoin': 'round' };
    if (one.low && !one.bars) {
      const back = one.x.map((at, i) => `L${right(at).toFixed(1)} ${up(one.low[i]).toFixed(1)}`).reverse().join('');
      canvas.append(svg('path', { class: 'band', fill: one.colour, d: `${line(one.x, one.high)}${back}Z` }));
    }
    const weight = one.bars || one.y.length < 8 ? 0 : options.smooth || 0;
    if (weight) canvas.append(svg('path', { ...stroke, class: 'raw', 'stroke-width': 1, d: line(one.x, one.y) }));
    canvas.append(svg('path', { ...stroke, 'stroke-dasharray': one.dash, d: line(one.x, weight ? smoothed(one.y, weight) : one.y) }));
    one.x.forEach((at, i) => {
      if (one.bars && one.low) canvas.append(svg('line', { stroke: one.colour, x1: right(at), x2: right(at), y1: up(one.low[i]), y2: up(one.high[i]) }));
      if (one.bars || one.x.length === 1) canvas.append(svg('circle', { cx: right(at), cy: up(one.y[i]), r: 3, fill: one.colour }));
    });
  }

  const cursor = svg('line', { class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden' });
  canvas.append(cursor);
  const readout = el('div', { class: 'readout', 'aria-live': 'polite' });
  let place = xs.length - 1;
  const show = (at) => {
    place = Math.max(0, Math.min(xs.length - 1, at));
    const x = xs[place];
    fill(cursor, { x1: right(x), x2: right(x), visibility: 'visible' }, []);
    readout.replaceChildren(`step ${number(Math.round(x))}`, ...series.flatMap((one) => {
      const i = nearest(one.x, x);
      const range = one.low ? ` (${write(one.low[i])} to ${write(one.high[i])})` : '';
      return Math.abs(one.x[i] - x) > (last - first) / 20 ? [] : [' · ', one.label, ' ', el('b', {}, write(one.y[i])), range];
    }));
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = first + (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT) * (last - first);
    show(nearest(xs, x));
  };
  const keys = { ArrowLeft: () => place - 1, ArrowRight: () => place + 1, Home: () => 0, End: () => xs.length - 1 };
  const summary = series.map((one) => `${one.label} ends at ${write(one.y[one.y.length - 1])}`).join(', ');
  return el('figure', {
    id: options.id, tabindex: 0, role: 'group', 'aria-label': `${options.title}: ${summary}`,
    onpointermove: at, onfocus: () => show(place),
    onpointerleave: () => cursor.setAttribute('visibility', 'hidden'),
    onkeydown: (event) => {
      if (!keys[event.key]) return;
      event.preventDefault();
      show(keys[event.key]());
    },
  }, el('figcaption', {}, options.title, ' ', el('span', {}, options.about || '')), canvas, readout);
}

function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle; else high = middle;
  }
  return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
}
