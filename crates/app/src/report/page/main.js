// The page, section by section, from the data. When the data changes, it is drawn again with what the reader has chosen.

let data = JSON.parse(byId('data').textContent);
const chosen = { hidden: new Set(), smooth: '0.6', figure: 'mean_at_k', trace: 0, arm: '', verdict: '', blocks: false };

const UNITS = {
  accuracy: ['Accuracy', 'share', 'of the sampled responses'],
  reward: ['Reward', 'number', 'mean of the sampled responses'],
  solve_rate: ['Solve rate', 'share', 'on the present tier'],
  tier: ['Tier', 'number', 'that the stage has reached'],
  loss: ['Loss', 'number', ''],
  nll: ['Negative log-likelihood', 'number', 'of a token, in nats'],
  parallel_ratio: ['Parallel ratio', 'share', 'responses with a well-formed block'],
  well_formed: ['Well formed', 'share', 'responses that follow the grammar of the tags'],
  block_position: ['Block position', 'share', '0: explores at the start, 100 %: verifies at the end'],
  blocks: ['Blocks', 'number', 'a response'],
  paths_per_block: ['Paths', 'number', 'a block'],
  path_diversity: ['Path diversity', 'share', '1 − BLEU between the paths of a block'],
  first_words_differ: ['First words differ', 'share', 'of two paths of a block'],
  some_path_right: ['Some path right', 'share', 'of the responses with a block: exploration'],
  answer_right_given_path: ['Answer right given a right path', 'share', 'consolidation'],
  total_tokens: ['Tokens', 'number', 'of a response'],
  critical_path_tokens: ['Critical path', 'number', 'tokens that follow one another: latency'],
  truncated: ['Truncated', 'share', 'responses cut by the budget'],
  cut_paths: ['Cut paths', 'number', 'a response'],
  forced: ['Forced tokens', 'share', 'set by the engine, not sampled'],
  log_prob_gap_max: ['Largest log-prob gap', 'number', 'between sampler and trainer', true],
  log_prob_gap: ['Mean log-prob gap', 'number', 'between sampler and trainer', true],
  entropy: ['Entropy', 'number', 'of a token, in nats'],
  clip_fraction: ['Clipped', 'share', 'of the probability ratios'],
  kl: ['KL to the reference', 'number', 'of a token, in nats'],
  equal_groups: ['Equal groups', 'number', 'left out of the update'],
  resample_rounds: ['Resampling rounds', 'number', ''],
  lr: ['Learning rate', 'number', ''],
  grad_norm: ['Gradient norm', 'number', 'before clipping'],
  tokens_per_second: ['Training speed', 'number', 'tokens a second'],
  sampled_tokens_per_second: ['Sampling speed', 'number', 'tokens a second'],
  seconds: ['Seconds', 'number', 'a step'],
  seconds_rollout: ['Seconds of sampling', 'number', 'a step'],
};
const GROUPS = [
  ['Learning', (name) => /^(accuracy|loss|nll|tier|solve_rate)$|^reward/.test(name)],
  ['Parallel thinking', (name) => /parallel|formed|^block|path|^first_words/.test(name) && !/^c(ut|ritical)/.test(name)],
  ['Length', (name) => /^(total_tokens|critical_path_tokens|truncated|cut_paths|forced)$/.test(name)],
  ['Soundness', (name) => /^(log_prob|entropy|clip|kl|equal|resample|importance|fork)/.test(name)],
  ['Optimiser and speed', (name) => /^(lr|grad_norm|.*per_second|seconds.*)$/.test(name)],
  ['Other', () => true],
];
const SIGNS = { better: ['▲', 'better'], worse: ['▼', 'worse'], level: ['≈', 'no clear difference'], sound: ['✓', 'sound'], warning: ['!', 'warning'], note: ['·', 'note'] };

// All arms of all runs, each with the colour and the dash that it keeps everywhere.
function armsOf(data) {
  const several = data.runs.length > 1;
  const arms = data.runs.flatMap((run) => run.arms.map((arm) => ({ run, arm, label: several ? `${run.name} / ${arm.name}` : arm.name })));
  arms.forEach((one, i) => Object.assign(one, { colour: colour(i), dash: dash(i) }));
  return arms;
}
const isShown = (one) => !chosen.hidden.has(one.label);
const place = (section) => document.querySelector(`#${section} > div`);
const put = (section, ...children) => place(section).replaceChildren(...children.flat(Infinity).filter(Boolean));

function heading() {
  const names = data.runs.map((run) => run.name).join(', ');
  byId('title').textContent = names || 'parallel-r1';
  document.title = `${names} · parallel-r1`;
  const facts = (run) => [
    run.finished ? 'finished' : 'not finished', run.model && `model ${run.model}`, run.seed !== null && `seed ${run.seed}`,
    run.seconds !== null && duration(run.seconds), run.peak_memory_bytes && `${Math.round(run.peak_memory_bytes / 2 ** 20)} MiB`,
  ].filter(Boolean).join(' · ');
  byId('facts').replaceChildren(...data.runs.flatMap((run, i) => [i ? el('br') : '', data.runs.length > 1 ? `${run.name}: ` : '', facts(run)]));
}

function verdicts() {
  const sign = (tone) => el('span', { class: 'sign', role: 'img', 'aria-label': SIGNS[tone][1] }, SIGNS[tone][0]);
  const signed = (value) => `${value > 0 ? '+' : ''}${(100 * value).toFixed(1)}`;
  const row = (tier) => el('tr', {}, el('td', {}, tier.tier), el('td', {}, tier.problems), el('td', {}, percent(tier.before)),
    el('td', {}, percent(tier.after)), el('td', {}, signed(tier.after - tier.before)),
    el('td', {}, tier.interval ? `${signed(tier.interval.low)} to ${signed(tier.interval.high)}` : '–'),
    el('td', {}, tier.p_value === null ? '–' : tier.p_value < 0.001 ? '< 0.001' : tier.p_value.toFixed(3)),
    el('td', { class: tier.tone }, el('span', { role: 'img', 'aria-label': SIGNS[tier.tone][1], title: SIGNS[tier.tone][1] }, SIGNS[tier.tone][0])));
  const head = ['tier', 'problems', 'before', 'after', 'points', '95 % interval', 'p', ''];
  const table = (tiers) => el('div', { class: 'scroll' },
    el('table', {}, el('thead', {}, el('tr', {}, head.map((name) => el('th', { scope: 'col' }, name)))), el('tbody', {}, tiers.map(row))));
  const draw = (verdict) => el('div', { class: `verdict ${verdict.tone}` }, sign(verdict.tone),
    el('div', {}, el('b', {}, verdict.title), verdict.detail && el('p', {}, verdict.detail), verdict.tiers && table(verdict.tiers)));
  if (!data.verdicts.length) return put('verdicts', el('p', { class: 'quiet' }, 'Nothing to say yet.'));
  const [compared, others] = [true, false].map((tiers) => data.verdicts.filter((verdict) => Boolean(verdict.tiers) === tiers));
  const how = 'Mean accuracy after training. Each problem is compared with itself; clear is what has p < 0.05 in a sign-flip test.';
  put('verdicts', compared.length > 0 && el('p', { class: 'quiet' }, how), el('div', { class: 'cards wide' }, compared.map(draw)), el('div', { class: 'cards' }, others.map(draw)));
}

const FIGURES = {
  mean_at_k: ['mean@k', true], pass_at_k: ['pass@k', true], maj_at_k: ['maj@k', true], parallel_ratio: ['parallel ratio', true],
  some_path_right: ['some path right', true], answer_right_given_path: ['answer right given a right path', true],
  block_position: ['block position', true], path_diversity: ['path diversity', true], blocks: ['blocks a response', false],
  total_tokens: ['tokens', false], critical_path_tokens: ['critical path, tokens', false], truncated: ['truncated', true], well_formed: ['well formed', true],
};
const INTERVALS = { mean_at_k: 'interval', pass_at_k: 'pass_interval', maj_at_k: 'maj_interval' };

function results() {
  const measured = data.runs.filter((run) => run.columns.length);
  if (!measured.length) return put('results', el('p', { class: 'quiet' }, 'No evaluation yet.'));
  const figure = chosen.figure;
  const options = Object.entries(FIGURES).map(([name, [title]]) => el('option', { value: name, selected: name === figure }, title));
  const pick = el('select', { id: 'figure', onchange: (event) => { chosen.figure = event.target.value; results(); byId('figure').focus(); } }, options);
  put('results', el('p', {}, el('label', {}, 'Show ', pick)), measured.map((run) => [
    data.runs.length > 1 && el('h3', {}, run.name), resultTable(run, figure)]), legend(armsOf(data)), tierCharts(figure));
}

function resultTable(run, figure) {
  const shares = FIGURES[figure][1];
  const best = (tier) => Math.max(...run.columns.map((column) => column.tiers[tier]?.[figure] ?? -Infinity));
  const cell = (tier) => (column) => {
    const result = column.tiers[tier], value = result?.[figure], interval = result?.[INTERVALS[figure]];
    if (value === undefined || value === null) return el('td', {}, '–');
    const half = interval && ` ± ${(50 * (interval.high - interval.low)).toFixed(1)}`;
    return el('td', { class: INTERVALS[figure] && value === best(tier) && 'best' }, shares ? (100 * value).toFixed(1) : number(value), el('small', {}, half || ''));
  };
  const some = (tier) => run.columns.map((column) => column.tiers[tier]).find(Boolean);
  const row = (tier) => el('tr', {}, el('td', {}, tier.name, tier.trained ? ' *' : ''), el('td', {}, `${some(tier.name)?.problems ?? '–'} × ${some(tier.name)?.samples ?? '–'}`), run.columns.map(cell(tier.name)));
  const head = ['tier', 'problems × k', ...run.columns.map((column) => column.name)].map((name) => el('th', { scope: 'col' }, name));
  const note = `${FIGURES[figure][0]}${shares ? ' in %' : ''}${INTERVALS[figure] ? ' ± half the 95 % bootstrap interval' : ''}. * reinforcement learning used the tier`;
  return [el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, run.tiers.map(row)))), el('p', { class: 'quiet' }, note)];
}

// Accuracy per tier after each stage, a line for each arm, from the base on.
function tierCharts(figure) {
  const tiers = [...new Set(data.runs.flatMap((run) => run.tiers.map((tier) => tier.name)))];
  const of = (tier) => armsOf(data).filter(isShown).map(({ run, arm, label, colour, dash }) => {
    const columns = run.columns.filter((column) => (column.arm === null || column.arm === arm.name) && (column.tiers[tier]?.[figure] ?? null) !== null);
    const interval = (end) => columns.map((column) => column.tiers[tier][INTERVALS[figure]]?.[end]);
    const bars = INTERVALS[figure] && interval('low').every((value) => value !== undefined) ? { low: interval('low'), high: interval('high') } : {};
    return { label, colour, dash, x: columns.map((column) => column.step), y: columns.map((column) => column.tiers[tier][figure]), bars: true, ...bars };
  });
  const draw = (tier) => chart(of(tier), { id: `tier-${tier}`, title: `Tier ${tier}`, about: FIGURES[figure][0], unit: FIGURES[figure][1] ? 'share' : 'number' });
  return el('div', { class: 'charts' }, tiers.map(draw));
}

function curriculum() {
  const stage = (one) => (stage) => {
    const steps = stage.planned && stage.planned !== stage.to - stage.from ? `${stage.to - stage.from} of ${stage.planned} steps` : `${stage.to - stage.from} steps`;
    const what = [stage.kind.toUpperCase(), steps, stage.reward].filter(Boolean).join(', ');
    return el('div', { style: `flex: ${Math.max(1, stage.to - stage.from)}; border-top-color: ${one.colour}`, title: `${stage.name}: ${what}` }, el('b', {}, stage.name), el('br'), el('span', { class: 'quiet' }, what));
  };
  const arm = (one) => [el('div', {}, el('b', {}, one.label), el('span', { class: 'quiet' }, ` · ${one.arm.structure || 'sequential'}`)), el('div', { class: 'timeline' }, one.arm.stages.map(stage(one)))];
  const arms = armsOf(data);
  put('curriculum', arms.length ? arms.map(arm) : el('p', { class: 'quiet' }, 'No step yet.'));
}

function training() {
  const arms = armsOf(data);
  const names = [...new Set(arms.flatMap((one) => Object.keys(one.arm.series)))];
  const order = (name) => { const at = Object.keys(UNITS).indexOf(name); return at < 0 ? 99 : at; };
  names.sort((a, b) => order(a) - order(b) || a.localeCompare(b));
  const constant = (name) => new Set(arms.flatMap((one) => one.arm.series[name]?.y || [])).size === 1;
  const still = names.filter((name) => constant(name) && arms.some((one) => one.arm.series[name]?.y.length > 1));
  const left = new Set(names.filter((name) => !still.includes(name)));
  const groups = GROUPS.map(([title, fits]) => [title, [...left].filter((name) => fits(name) && left.delete(name))]);
  const value = (name) => `${UNITS[name]?.[0] || name} ${number(arms.find((one) => one.arm.series[name]).arm.series[name].y[0])}`;
  put('training', legend(arms), smoothing(), groups.filter(([, names]) => names.length).map(([title, names]) => [
    el('h3', {}, title), el('div', { class: 'charts' }, names.map((name) => metric(name, arms)))]),
    still.length > 0 && el('p', { class: 'quiet' }, `Without change: ${still.map(value).join(', ')}.`));
}

function legend(arms) {
  const toggle = (one) => el('label', {}, el('input', { type: 'checkbox', checked: isShown(one), onchange: (event) => {
    if (event.target.checked) chosen.hidden.delete(one.label); else chosen.hidden.add(one.label);
    training(); results();
  } }), svg('svg', { class: 'key', viewBox: '0 0 36 12', 'aria-hidden': true }, svg('line', { x1: 0, x2: 36, y1: 6, y2: 6, stroke: one.colour, 'stroke-width': 3, 'stroke-dasharray': one.dash })), one.label);
  return el('div', { class: 'legend' }, arms.map(toggle));
}

function smoothing() {
  const options = [['0', 'none'], ['0.6', 'light'], ['0.9', 'strong']].map(([weight, title]) => el('option', { value: weight, selected: weight === chosen.smooth }, title));
  const pick = el('select', { id: 'smoothing', onchange: (event) => { chosen.smooth = event.target.value; training(); byId('smoothing').focus(); } }, options);
  return el('p', {}, el('label', {}, 'Smoothing ', pick), el('span', { class: 'quiet' }, ' Steps of an arm go from left to right; a dotted line is where a stage begins.'));
}

function metric(name, arms) {
  const [title, unit, about, log] = UNITS[name] || [name.replaceAll('_', ' '), 'number', ''];
  const shown = arms.filter((one) => isShown(one) && one.arm.series[name]);
  const series = shown.map((one) => ({ ...one.arm.series[name], label: one.label, colour: one.colour, dash: one.dash }));
  const marks = shown.flatMap((one) => one.arm.stages.slice(1).map((stage) => ({ x: stage.from, colour: one.colour, label: `${one.label}: ${stage.name} begins after step ${stage.from}` })));
  const to = Math.max(...arms.flatMap((one) => one.arm.stages.map((stage) => stage.to)));
  return chart(series, { id: `metric-${name}`, title, about, unit, log, marks, from: 0, to, smooth: log ? 0 : +chosen.smooth });
}

function traces() {
  const several = data.runs.length > 1;
  const all = data.runs.flatMap((run) => run.traces.map((trace) => ({ ...trace, label: several ? `${run.name} / ${trace.arm}` : trace.arm })));
  if (!all.length) return put('traces', el('p', { class: 'quiet' }, 'No sampled response yet: reinforcement learning records them.'));
  const words = { right: (trace) => trace.correct === true, wrong: (trace) => trace.correct === false };
  const opens = (trace) => trace.pieces.find((piece) => piece.paths);
  const paths = (trace) => (opens(trace) ? `, ${opens(trace).paths.length} paths` : '');
  const fits = (trace) => (!chosen.arm || trace.label === chosen.arm) && (!chosen.verdict || words[chosen.verdict](trace)) && (!chosen.blocks || opens(trace));
  const shown = all.filter(fits);
  // A live page is drawn again under the reader's eyes: the response and the place in the list stay.
  const again = shown.findIndex((trace) => keyOf(trace) === chosen.key), scrolled = byId('trace-list')?.scrollTop || 0;
  chosen.trace = again >= 0 ? again : Math.max(0, Math.min(chosen.trace, shown.length - 1));
  const pick = (name, title, values) => el('label', {}, title, ' ', el('select', { id: `filter-${name}`, onchange: (event) => { chosen[name] = event.target.value; chosen.trace = 0; traces(); byId(`filter-${name}`).focus(); } },
    values.map(([value, text]) => el('option', { value, selected: chosen[name] === value }, text))));
  const labels = [...new Set(all.map((trace) => trace.label))];
  const filters = el('div', { class: 'legend' }, pick('arm', 'Arm', [['', 'all'], ...labels.map((label) => [label, label])]),
    pick('verdict', 'Verdict', [['', 'all'], ['right', 'right'], ['wrong', 'wrong']]),
    el('label', {}, el('input', { type: 'checkbox', checked: chosen.blocks, onchange: (event) => { chosen.blocks = event.target.checked; chosen.trace = 0; traces(); } }), 'with a block'),
    el('span', { class: 'quiet', role: 'status' }, `${shown.length} of ${all.length} sampled responses`));
  const sign = (trace) => (trace.correct === true ? el('span', { class: 'right' }, '✓ ') : trace.correct === false ? el('span', { class: 'wrong' }, '✗ ') : '– ');
  const entry = (trace, i) => el('button', { type: 'button', 'aria-current': i === chosen.trace ? 'true' : 'false', onclick: () => select(i, shown) },
    sign(trace), `${trace.step.toLocaleString('en')} `, el('span', { class: 'quiet' }, trace.label, ', ', trace.stage, paths(trace), ' '), trace.problem);
  put('traces', filters, el('div', { class: 'browser' }, el('div', { class: 'list', id: 'trace-list', 'aria-label': 'Sampled responses' }, shown.map(entry)), el('article', { class: 'trace', id: 'trace', 'aria-live': 'polite' })));
  chosen.shown = shown;
  byId('trace-list').scrollTop = scrolled;
  if (shown.length) select(chosen.trace, shown, false);
}

const keyOf = (trace) => JSON.stringify([trace.label, trace.step, trace.pieces]);

function select(at, shown, scroll = true) {
  chosen.trace = at;
  chosen.key = keyOf(shown[at]);
  [...byId('trace-list').children].forEach((button, i) => button.setAttribute('aria-current', i === at ? 'true' : 'false'));
  const list = byId('trace-list'), button = list.children[at];
  if (scroll) list.scrollTop = Math.max(0, button.offsetTop - list.offsetTop - list.clientHeight / 2);
  const trace = shown[at];
  const verdict = trace.correct === true ? el('span', { class: 'right' }, '✓ right') : trace.correct === false ? el('span', { class: 'wrong' }, '✗ wrong') : el('span', {}, '– not judged');
  const part = ([name, value]) => `${name} ${number(value)}`;
  const parts = Object.entries(trace.parts).filter(([, value]) => typeof value === 'number').map(part).join(', ');
  const chips = [`${trace.label}, ${trace.stage}, step ${trace.step}`, trace.reward !== null && `reward ${number(trace.reward)}${parts && ` (${parts})`}`,
    trace.tokens !== null && `${trace.tokens} tokens`, trace.critical_path_tokens !== null && `${trace.critical_path_tokens} on the critical path`];
  byId('trace').replaceChildren(el('div', { class: 'problem' }, trace.problem, el('div', { class: 'quiet' }, `gold answer: ${trace.gold || 'none'}`)),
    el('div', { class: 'chips' }, verdict, chips.filter(Boolean).map((text) => el('span', {}, text))),
    ...trace.faults.map((fault) => el('p', { class: 'wrong' }, `! ${fault}`)), el('div', { class: 'thread' }, threads(trace.pieces)),
    trace.cut ? el('p', { class: 'quiet' }, 'The rest is left out here.') : '');
}

function recipes() {
  put('recipes', data.runs.map((run) => el('details', {}, el('summary', {}, `${run.name}: recipe.toml`), el('p', { class: 'quiet' }, run.folder), el('pre', {}, run.recipe))));
}

function draw() {
  const focused = document.activeElement?.id;
  [heading, verdicts, results, curriculum, training, traces, recipes].forEach((section) => section());
  if (focused) byId(focused)?.focus();
}

function theme() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const now = document.documentElement.dataset.theme || (dark ? 'dark' : 'light');
  document.documentElement.dataset.theme = now === 'dark' ? 'light' : 'dark';
}

function step(by) {
  const at = chosen.trace + by;
  if (chosen.shown?.[at]) select(at, chosen.shown);
}

const KEYS = { j: () => step(1), k: () => step(-1), t: theme, '?': () => byId('help').showModal() };
['verdicts', 'results', 'curriculum', 'training', 'traces', 'recipes'].forEach((section, i) => { KEYS[i + 1] = () => byId(section).scrollIntoView(); });

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  KEYS[event.key]?.();
});
byId('theme').addEventListener('click', theme);
byId('help-button').addEventListener('click', KEYS['?']);

async function follow() {
  try {
    const text = await (await fetch('data.json', { cache: 'no-store' })).text();
    if (text !== follow.last) {
      data = JSON.parse(text);
      follow.last = text;
      draw();
    }
    byId('live').textContent = `live · ${new Date().toLocaleTimeString('en-GB')}`;
  } catch {
    byId('live').textContent = 'the run has ended, or does not answer';
  }
  setTimeout(follow, 3000);
}

draw();
// The place that the address names could not be found before the page was drawn.
if (location.hash) byId(location.hash.slice(1))?.scrollIntoView();
if (data.live) follow();
document.documentElement.dataset.state = 'drawn';
