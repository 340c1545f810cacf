// How the arms were trained: their stages, and every number of every step.

// Numbers by name: title, unit, what it is of, and whether its scale is logarithmic.
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
  [
    'Parallel thinking',
    (name) => /parallel|formed|^block|path|^first_words/.test(name) && !/^c(ut|ritical)/.test(name),
  ],
  ['Length', (name) => /^(total_tokens|critical_path_tokens|truncated|cut_paths|forced)$/.test(name)],
  ['Soundness', (name) => /^(log_prob|entropy|clip|kl|equal|resample|importance|fork)/.test(name)],
  ['Optimiser and speed', (name) => /^(lr|grad_norm|.*per_second|seconds.*)$/.test(name)],
  ['Other', () => true],
];

function curriculum() {
  const arms = armsOf();
  put('curriculum', arms.length ? arms.map(timeline) : quiet('No step yet.'));
}

function timeline(one) {
  const stage = ({ name, kind, from, to, planned, reward }) => {
    const steps = planned && planned !== to - from ? `${to - from} of ${planned} steps` : `${to - from} steps`;
    const what = [kind.toUpperCase(), steps, reward].filter(Boolean).join(', ');
    const style = `flex: ${Math.max(1, to - from)}; border-top-color: ${one.colour}`;
    return el(
      'div',
      { style, title: `${name}: ${what}` },
      el('b', {}, name),
      el('br'),
      el('span', { class: 'quiet' }, what),
    );
  };
  const structure = el('span', { class: 'quiet' }, ` · ${one.arm.structure || 'sequential'}`);
  return [
    el('div', {}, el('b', {}, one.label), structure),
    el('div', { class: 'timeline' }, one.arm.stages.map(stage)),
  ];
}

function training() {
  const arms = armsOf();
  const order = (name) => Object.keys(UNITS).indexOf(name) + 1 || 99;
  const names = [...new Set(arms.flatMap((one) => Object.keys(one.arm.series)))];
  names.sort((a, b) => order(a) - order(b) || a.localeCompare(b));
  const still = names.filter((name) => isStill(name, arms));
  const left = new Set(names.filter((name) => !still.includes(name)));
  const groups = GROUPS.map(([title, fits]) => [title, [...left].filter((name) => fits(name) && left.delete(name))]);
  const drawn = groups.map(([title, names]) => [title, names.map((name) => metric(name, arms)).filter(Boolean)]);
  const draw = ([title, charts]) => [el('h3', {}, title), el('div', { class: 'charts' }, charts)];
  const value = (name) => `${UNITS[name]?.[0] || name} ${number(valuesOf(name, arms)[0])}`;
  put(
    'training',
    legend('training'),
    smoothing(),
    drawn.filter(([, charts]) => charts.length).map(draw),
    still.length > 0 && quiet(`Without change: ${still.map(value).join(', ')}.`),
  );
}

const valuesOf = (name, arms) => arms.flatMap((one) => one.arm.series[name]?.y || []);

// A number that never changes needs no chart.
function isStill(name, arms) {
  const values = valuesOf(name, arms);
  return values.length > arms.length && new Set(values).size === 1;
}

function smoothing() {
  const weights = [
    ['0', 'none'],
    ['0.6', 'light'],
    ['0.9', 'strong'],
  ];
  const pick = picker('smoothing', 'Smoothing', weights, chosen.smooth, (weight) => {
    chosen.smooth = weight;
    training();
  });
  const how = ' Steps of an arm go from left to right; a dotted line is where a stage begins.';
  return el('p', {}, pick, el('span', { class: 'quiet' }, how));
}

function metric(name, arms) {
  const [title, unit, about, log] = UNITS[name] || [name.replaceAll('_', ' '), 'number', ''];
  const shown = arms.filter((one) => isShown(one) && one.arm.series[name]);
  const series = shown.map(({ arm, label, colour, dash }) => ({ ...arm.series[name], label, colour, dash }));
  const begins =
    ({ label, colour }) =>
    (stage) => ({
      x: stage.from,
      colour,
      label: `${label}: ${stage.name} begins after step ${stage.from}`,
    });
  const marks = shown.flatMap((one) => one.arm.stages.slice(1).map(begins(one)));
  const to = Math.max(...arms.flatMap((one) => one.arm.stages.map((stage) => stage.to)));
  const smooth = log ? 0 : +chosen.smooth;
  return chart(series, { id: `metric-${name}`, title, about, unit, log, marks, from: 0, to, smooth });
}
