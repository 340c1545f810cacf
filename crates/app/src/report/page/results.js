// What the evaluations say: a table for each run, and a chart for each tier.

// Figures by name: their titles, and whether they are shares.
const FIGURES = {
  mean_at_k: ['mean@k', true],
  pass_at_k: ['pass@k', true],
  maj_at_k: ['maj@k', true],
  parallel_ratio: ['parallel ratio', true],
  some_path_right: ['some path right', true],
  answer_right_given_path: ['answer right given a right path', true],
  block_position: ['block position', true],
  path_diversity: ['path diversity', true],
  blocks: ['blocks a response', false],
  total_tokens: ['tokens', false],
  critical_path_tokens: ['critical path, tokens', false],
  truncated: ['truncated', true],
  well_formed: ['well formed', true],
};
const INTERVALS = { mean_at_k: 'interval', pass_at_k: 'pass_interval', maj_at_k: 'maj_interval' };

function results() {
  const measured = data.runs.filter((run) => run.columns.length);
  if (!measured.length) return put('results', quiet('No evaluation yet.'));
  const titles = Object.entries(FIGURES).map(([name, [title]]) => [name, title]);
  const pick = picker('figure', 'Show', titles, chosen.figure, (name) => {
    chosen.figure = name;
    results();
  });
  const tables = measured.map((run) => [data.runs.length > 1 && el('h3', {}, run.name), resultTable(run)]);
  put('results', el('p', {}, pick), tables, quiet(resultNote()), legend('results'), tierCharts());
}

function resultNote() {
  const [title, share] = FIGURES[chosen.figure];
  const interval = INTERVALS[chosen.figure] ? ' ± half the 95 % bootstrap interval' : '';
  return `${title}${share ? ' in %' : ''}${interval}. * reinforcement learning used the tier`;
}

function resultTable(run) {
  const values = (tier) => run.columns.map((column) => column.tiers[tier]?.[chosen.figure] ?? null);
  const row = (tier) => {
    const some = run.columns.map((column) => column.tiers[tier.name]).find(Boolean);
    const best = INTERVALS[chosen.figure] && Math.max(...values(tier.name).filter((value) => value !== null));
    const name = el('td', {}, tier.name, tier.trained ? ' *' : '');
    const size = el('td', {}, some ? `${some.problems} × ${some.samples}` : '–');
    return [name, size, ...run.columns.map((column) => resultCell(column.tiers[tier.name], best))];
  };
  return table(['tier', 'problems × k', ...run.columns.map((column) => column.name)], run.tiers.map(row));
}

function resultCell(result, best) {
  const value = result?.[chosen.figure] ?? null;
  if (value === null) return el('td', {}, '–');
  const interval = result[INTERVALS[chosen.figure]];
  const half = interval ? ` ± ${(50 * (interval.high - interval.low)).toFixed(1)}` : '';
  const text = FIGURES[chosen.figure][1] ? (100 * value).toFixed(1) : number(value);
  return el('td', { class: value === best && 'best' }, text, el('small', {}, half));
}

// A figure after each stage, a line for each arm, from the base on.
function tierCharts() {
  const tiers = [...new Set(data.runs.flatMap((run) => run.tiers.map((tier) => tier.name)))];
  const [about, share] = FIGURES[chosen.figure];
  const draw = (tier) => {
    const lines = armsOf()
      .filter(isShown)
      .map((one) => tierLine(one, tier));
    return chart(lines, { id: `tier-${tier}`, title: `Tier ${tier}`, about, unit: share ? 'share' : 'number' });
  };
  return el('div', { class: 'charts' }, tiers.map(draw));
}

function tierLine({ run, arm, label, colour, dash }, tier) {
  const ofArm = (column) => column.arm === null || column.arm === arm.name;
  const known = (column) => (column.tiers[tier]?.[chosen.figure] ?? null) !== null;
  const columns = run.columns.filter((column) => ofArm(column) && known(column));
  const results = columns.map((column) => column.tiers[tier]);
  const intervals = results.map((result) => result[INTERVALS[chosen.figure]]);
  const ends = (name) => intervals.map((interval) => interval[name]);
  const bars = intervals.every(Boolean) ? { low: ends('low'), high: ends('high') } : {};
  const y = results.map((result) => result[chosen.figure]);
  return { label, colour, dash, x: columns.map((column) => column.step), y, bars: true, ...bars };
}
