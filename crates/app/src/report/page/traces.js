// A browser of sampled responses.

function traces() {
  const all = data.runs.flatMap((run) => run.traces.map((trace) => ({ ...trace, label: labelOf(run, trace.arm) })));
  if (!all.length) return put('traces', quiet('No sampled response yet: reinforcement learning records them.'));
  const shown = all.filter(isChosen);
  // A live page is drawn again under the reader's eyes: the response and the place in the list stay.
  const again = shown.findIndex((trace) => keyOf(trace) === chosen.key);
  const scrolled = byId('trace-list')?.scrollTop || 0;
  const list = el(
    'div',
    { class: 'list', id: 'trace-list', role: 'group', 'aria-label': 'Sampled responses' },
    shown.map(entry),
  );
  const article = el('article', { class: 'trace', id: 'trace', 'aria-live': 'polite' });
  put('traces', filters(all, shown), el('div', { class: 'browser' }, list, article));
  list.scrollTop = scrolled;
  chosen.shown = shown;
  if (shown.length) select(again >= 0 ? again : Math.max(0, Math.min(chosen.trace, shown.length - 1)), false);
}

const keyOf = (trace) => JSON.stringify([trace.label, trace.step, trace.pieces]);
const blockOf = (trace) => trace.pieces.find((piece) => piece.paths);

function isChosen(trace) {
  const verdict = { right: true, wrong: false }[chosen.verdict];
  if (chosen.arm && trace.label !== chosen.arm) return false;
  if (verdict !== undefined && trace.correct !== verdict) return false;
  return !chosen.blocks || Boolean(blockOf(trace));
}

function filters(all, shown) {
  const set = (name) => (value) => {
    chosen[name] = value;
    chosen.trace = 0;
    traces();
  };
  const labels = [...new Set(all.map((trace) => trace.label))];
  const same = (words) => words.map((word) => [word, word]);
  const count = `${shown.length} of ${all.length} sampled responses`;
  return el(
    'div',
    { class: 'legend' },
    picker('filter-arm', 'Arm', [['', 'all'], ...same(labels)], chosen.arm, set('arm')),
    picker('filter-verdict', 'Verdict', [['', 'all'], ...same(['right', 'wrong'])], chosen.verdict, set('verdict')),
    checkbox('filter-blocks', chosen.blocks, set('blocks'), 'with a block'),
    el('span', { class: 'quiet', role: 'status' }, count),
  );
}

function judged(trace, words) {
  if (trace.correct === null) return el('span', {}, words ? '– not judged' : '– ');
  const [sign, word] = trace.correct ? ['✓ ', 'right'] : ['✗ ', 'wrong'];
  return el('span', { class: word }, sign, words && word);
}

function entry(trace, i) {
  const paths = blockOf(trace) ? `, ${blockOf(trace).paths.length} paths` : '';
  const place = el('span', { class: 'quiet' }, `${trace.label}, ${trace.stage}${paths} `);
  const onclick = () => select(i, true);
  return el(
    'button',
    { type: 'button', onclick },
    judged(trace),
    `${trace.step.toLocaleString('en')} `,
    place,
    trace.problem,
  );
}

// Shows one of the listed responses.
function select(at, scroll) {
  const list = byId('trace-list');
  const trace = chosen.shown[at];
  chosen.trace = at;
  chosen.key = keyOf(trace);
  [...list.children].forEach((button, i) => button.setAttribute('aria-current', String(i === at)));
  const button = list.children[at];
  if (scroll) list.scrollTop = Math.max(0, button.offsetTop - list.offsetTop - list.clientHeight / 2);
  byId('trace').replaceChildren(
    el(
      'div',
      { class: 'problem' },
      trace.problem,
      el('div', { class: 'quiet' }, `gold answer: ${trace.gold || 'none'}`),
    ),
    el(
      'div',
      { class: 'chips' },
      judged(trace, true),
      chips(trace).map((text) => el('span', {}, text)),
    ),
    ...trace.faults.map((fault) => el('p', { class: 'wrong' }, `! ${fault}`)),
    el('div', { class: 'thread' }, threads(trace.pieces)),
    trace.cut ? quiet('The rest is left out here.') : '',
  );
}

function chips(trace) {
  const part = ([name, value]) => `${name} ${number(value)}`;
  const parts = Object.entries(trace.parts)
    .filter(([, value]) => typeof value === 'number')
    .map(part);
  const reward = trace.reward !== null && `reward ${number(trace.reward)}`;
  return [
    `${trace.label}, ${trace.stage}, step ${trace.step}`,
    reward && parts.length ? `${reward} (${parts.join(', ')})` : reward,
    trace.tokens !== null && `${trace.tokens} tokens`,
    trace.critical_path_tokens !== null && `${trace.critical_path_tokens} on the critical path`,
  ].filter(Boolean);
}
