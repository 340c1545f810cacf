// One chart: lines over steps, with a cursor for mouse and keyboard.
//
// series: [{label, colour, dash, x, y, low?, high?, bars?}], where low and high are drawn as a band, or as bars if asked.
// options: {id, title, about, unit: 'share' | 'number', log, marks: [{x, colour, label}], smooth: 0..1, from, to}

const WIDTH = 420,
  HEIGHT = 200,
  LEFT = 46,
  RIGHT = 16,
  TOP = 8,
  BOTTOM = 22;

function chart(series, options) {
  if (options.log) series = series.map(positive);
  series = series.filter((one) => one.x.length);
  if (!series.length) return null;
  const scale = scaleOf(series, options);
  const lines = series.map((one) => drawn(one, scale, options.smooth || 0));
  const canvas = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': true });
  canvas.append(...axes(scale, options), ...marks(options.marks || [], scale), ...lines.flat());
  const ends = series.map((one) => `${one.label} ends at ${scale.write(one.y[one.y.length - 1])}`).join(', ');
  const caption = el('figcaption', {}, options.title, ' ', el('span', {}, options.about || ''));
  const attributes = { id: options.id, tabindex: 0, role: 'group', 'aria-label': `${options.title}: ${ends}` };
  return cursor(el('figure', attributes, caption, canvas), canvas, series, scale);
}

// What a logarithm is defined for.
function positive(one) {
  const kept = one.y.map((value, i) => i).filter((i) => one.y[i] > 0);
  const of = (values) => values && kept.map((i) => values[i]);
  return { ...one, x: of(one.x), y: of(one.y), low: of(one.low), high: of(one.high) };
}

// From steps and values to places, and values to text.
function scaleOf(series, options) {
  const xs = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  const first = Math.min(xs[0], options.from ?? xs[0]);
  const last = Math.max(xs[xs.length - 1], options.to ?? 0, first + 1e-9);
  const [low, high] = domain(series, options);
  const level = options.log ? (y) => Math.log10(Math.max(y, 10 ** low)) : (y) => y;
  return {
    xs,
    first,
    last,
    low,
    high,
    right: (x) => LEFT + ((x - first) / (last - first)) * (WIDTH - LEFT - RIGHT),
    up: (y) => TOP + (1 - (level(y) - low) / (high - low)) * (HEIGHT - TOP - BOTTOM),
    write: options.unit === 'share' ? (y) => percent(y) : number,
  };
}

// The ends of the vertical axis; powers of ten on a logarithmic one.
function domain(series, options) {
  const values = series.flatMap((one) => one.y.concat(one.low || [], one.high || []));
  let low = Math.min(...values),
    high = Math.max(...values);
  if (options.log) {
    low = Math.floor(Math.log10(low));
    return [low, Math.max(Math.ceil(Math.log10(high)), low + 1)];
  }
  if (options.unit === 'share' && low >= 0 && high <= 1) return [0, high > 0.5 ? 1 : Math.max(high * 1.15, 0.02)];
  if (low > 0 && low < 0.5 * high) low = 0;
  const space = (high - low || Math.abs(high) || 1) * 0.06;
  return [low === 0 ? 0 : low - space, high + space];
}

function axes(scale, options) {
  const label = (y) => (options.log ? `1e${y}` : options.unit === 'share' ? `${+(100 * y).toFixed(1)} %` : number(y));
  const levels = options.log
    ? ticks(scale.low, scale.high, 3).filter(Number.isInteger)
    : ticks(scale.low, scale.high, 4);
  const rows = levels.flatMap((y) => {
    const at = scale.up(options.log ? 10 ** y : y);
    return [
      svg('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }),
      svg('text', { x: LEFT - 6, y: at + 4, 'text-anchor': 'end' }, label(y)),
    ];
  });
  const steps = ticks(scale.first, scale.last, 5)
    .filter(Number.isInteger)
    .map((x) => {
      const at = scale.right(x);
      const anchor = at + 24 > WIDTH ? { x: WIDTH - 2, 'text-anchor': 'end' } : { x: at, 'text-anchor': 'middle' };
      return svg('text', { ...anchor, y: HEIGHT - 6 }, x.toLocaleString('en'));
    });
  return [...rows, ...steps];
}

// Round numbers within a range, about so many.
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9),
    last = Math.floor(high / step + 1e-6);
  return Array.from({ length: last - first + 1 }, (_, i) => +((first + i) * step).toPrecision(12));
}

const marks = (marks, scale) =>
  marks
    .filter(({ x }) => x > scale.first && x < scale.last)
    .map((mark) => {
      const at = scale.right(mark.x);
      const line = {
        class: 'mark',
        x1: at,
        x2: at,
        y1: TOP,
        y2: HEIGHT - BOTTOM,
        stroke: mark.colour,
        'stroke-width': 1.5,
      };
      return svg('line', line, svg('title', {}, mark.label));
    });

// A series: its range, its values and, if it is smoothed, the values behind them.
function drawn(one, scale, smooth) {
  const point = (x, y) => `${scale.right(x).toFixed(1)} ${scale.up(y).toFixed(1)}`;
  const path = (y) => `M${one.x.map((x, i) => point(x, y[i])).join('L')}`;
  const stroke = { fill: 'none', stroke: one.colour, 'stroke-width': 2, 'stroke-linejoin': 'round' };
  const weight = one.bars || one.y.length < 8 ? 0 : smooth;
  const found = [];
  if (one.low && !one.bars) {
    const back = one.x
      .map((x, i) => point(x, one.low[i]))
      .reverse()
      .join('L');
    found.push(svg('path', { class: 'band', fill: one.colour, d: `${path(one.high)}L${back}Z` }));
  }
  if (weight) found.push(svg('path', { ...stroke, class: 'raw', 'stroke-width': 1, d: path(one.y) }));
  found.push(
    svg('path', { ...stroke, 'stroke-dasharray': one.dash, d: path(weight ? smoothed(one.y, weight) : one.y) }),
  );
  if (one.bars || one.x.length === 1) found.push(...one.x.flatMap((x, i) => dot(one, i, scale)));
  return found;
}

function dot(one, i, scale) {
  const at = scale.right(one.x[i]);
  const circle = svg('circle', { cx: at, cy: scale.up(one.y[i]), r: 3, fill: one.colour });
  if (!one.low) return [circle];
  return [
    circle,
    svg('line', { stroke: one.colour, x1: at, x2: at, y1: scale.up(one.low[i]), y2: scale.up(one.high[i]) }),
  ];
}

// Exponentially smoothed from the left, without a pull towards zero at its start.
function smoothed(y, weight) {
  let sum = 0,
    total = 0;
  return y.map((value) => {
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return sum / total;
  });
}

// Lets a reader walk along the steps; what stands there is written below.
function cursor(figure, canvas, series, scale) {
  const line = svg('line', { class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden' });
  const readout = el('div', { class: 'readout', 'aria-live': 'polite' });
  canvas.append(line);
  figure.append(readout);
  let place = scale.xs.length - 1;
  const show = (at) => {
    place = Math.max(0, Math.min(scale.xs.length - 1, at));
    const x = scale.xs[place];
    fill(line, { x1: scale.right(x), x2: scale.right(x), visibility: 'visible' }, []);
    readout.replaceChildren(`step ${number(Math.round(x))}`, ...series.flatMap((one) => said(one, x, scale)));
  };
  const pointed = (event) => {
    const box = canvas.getBoundingClientRect();
    const part = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT);
    show(nearest(scale.xs, scale.first + part * (scale.last - scale.first)));
  };
  const keys = {
    ArrowLeft: () => place - 1,
    ArrowRight: () => place + 1,
    Home: () => 0,
    End: () => scale.xs.length - 1,
  };
  return fill(
    figure,
    {
      onpointermove: pointed,
      onpointerleave: () => line.setAttribute('visibility', 'hidden'),
      onfocus: () => show(place),
      onkeydown: (event) => {
        if (!keys[event.key]) return;
        event.preventDefault();
        show(keys[event.key]());
      },
    },
    [],
  );
}

// The value of a series at a step, if it has one near it.
function said(one, x, scale) {
  const i = nearest(one.x, x);
  if (Math.abs(one.x[i] - x) > (scale.last - scale.first) / 20) return [];
  const range = one.low ? ` (${scale.write(one.low[i])} to ${scale.write(one.high[i])})` : '';
  return [' · ', one.label, ' ', el('b', {}, scale.write(one.y[i])), range];
}

function nearest(xs, x) {
  let low = 0,
    high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle;
    else high = middle;
  }
  return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
}
