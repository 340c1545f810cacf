// The page, section by section, from the data. When the data changes, it is drawn again as the reader has set it.

let data = JSON.parse(byId('data').textContent);
const chosen = { hidden: new Set(), smooth: '0.6', figure: 'mean_at_k', trace: 0, arm: '', verdict: '', blocks: false };

const labelOf = (run, arm) => (data.runs.length > 1 ? `${run.name} / ${arm}` : arm);
const isShown = (one) => !chosen.hidden.has(one.label);

// All arms of all runs, each with the colour and the dash that it keeps everywhere.
function armsOf() {
  const arms = data.runs.flatMap((run) => run.arms.map((arm) => ({ run, arm, label: labelOf(run, arm.name) })));
  return arms.map((one, i) => ({ ...one, colour: colour(i), dash: dash(i) }));
}

// Fills a section.
function put(section, ...children) {
  document.querySelector(`#${section} > div`).replaceChildren(...children.flat(Infinity).filter(Boolean));
}

// The arms with their lines; those that are unticked are not drawn.
function legend(section) {
  const line = ({ colour, dash }) =>
    svg('line', { x1: 0, x2: 36, y1: 6, y2: 6, stroke: colour, 'stroke-width': 3, 'stroke-dasharray': dash });
  const key = (one) => svg('svg', { class: 'key', viewBox: '0 0 36 12', 'aria-hidden': true }, line(one));
  const toggle = (one, i) =>
    checkbox(
      `${section}-arm-${i}`,
      isShown(one),
      (shown) => {
        if (shown) chosen.hidden.delete(one.label);
        else chosen.hidden.add(one.label);
        [results, training].forEach((section) => section());
      },
      key(one),
      one.label,
    );
  return el('div', { class: 'legend' }, armsOf().map(toggle));
}

function heading() {
  const names = data.runs.map((run) => run.name).join(', ');
  byId('title').textContent = names || 'parallel-r1';
  document.title = `${names} · parallel-r1`;
  const facts = data.runs.map((run) => `${data.runs.length > 1 ? `${run.name}: ` : ''}${factsOf(run)}`);
  byId('facts').replaceChildren(...facts.flatMap((text, i) => (i ? [el('br'), text] : [text])));
}

function factsOf(run) {
  return [
    run.finished ? 'finished' : 'not finished',
    run.model && `model ${run.model}`,
    run.seed !== null && `seed ${run.seed}`,
    run.seconds !== null && duration(run.seconds),
    run.peak_memory_bytes && `${Math.round(run.peak_memory_bytes / 2 ** 20)} MiB`,
  ]
    .filter(Boolean)
    .join(' · ');
}

function recipes() {
  const draw = (run) =>
    el('details', {}, el('summary', {}, `${run.name}: recipe.toml`), quiet(run.folder), el('pre', {}, run.recipe));
  put('recipes', data.runs.map(draw));
}

const SECTIONS = { verdicts, results, curriculum, training, traces, recipes };

function draw() {
  const focused = document.activeElement?.id;
  [heading, ...Object.values(SECTIONS)].forEach((section) => section());
  if (focused) byId(focused)?.focus();
}

function theme() {
  const root = document.documentElement.dataset;
  const dark = root.theme ? root.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.theme = dark ? 'light' : 'dark';
}

function step(by) {
  const at = chosen.trace + by;
  if (chosen.shown?.[at]) select(at, true);
}

const KEYS = { j: () => step(1), k: () => step(-1), t: theme, '?': () => byId('help').showModal() };
Object.keys(SECTIONS).forEach((section, i) => {
  KEYS[i + 1] = () => byId(section).scrollIntoView();
});

document.addEventListener('keydown', (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) KEYS[event.key]?.();
});
byId('theme').addEventListener('click', theme);
byId('help-button').addEventListener('click', KEYS['?']);

// Asks the dashboard for what has come since.
async function follow(known) {
  let text = known;
  try {
    text = await (await fetch('data.json', { cache: 'no-store' })).text();
    if (text !== known) {
      data = JSON.parse(text);
      draw();
    }
    byId('live').textContent = `live · ${new Date().toLocaleTimeString('en-GB')}`;
  } catch {
    byId('live').textContent = 'the run has ended, or does not answer';
  }
  setTimeout(follow, 3000, text);
}

draw();
// The place that the address names could not be found before the page was drawn.
if (location.hash) byId(location.hash.slice(1))?.scrollIntoView();
if (data.live) follow();
document.documentElement.dataset.state = 'drawn';
