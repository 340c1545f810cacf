// What a reader wants to know first.

const SIGNS = {
  better: ['▲', 'better'],
  worse: ['▼', 'worse'],
  level: ['≈', 'no clear difference'],
  sound: ['✓', 'sound'],
  warning: ['!', 'warning'],
  note: ['·', 'note'],
};

function verdicts() {
  if (!data.verdicts.length) return put('verdicts', quiet('Nothing to say yet.'));
  const compared = data.verdicts.filter((verdict) => verdict.tiers);
  const others = data.verdicts.filter((verdict) => !verdict.tiers);
  const how =
    'Mean accuracy after training. Each problem is compared with itself; clear is p < 0.05 in a sign-flip test.';
  put(
    'verdicts',
    compared.length > 0 && quiet(how),
    el('div', { class: 'cards wide' }, compared.map(verdictCard)),
    el('div', { class: 'cards' }, others.map(verdictCard)),
  );
}

function verdictCard(verdict) {
  const head = ['tier', 'problems', 'before', 'after', 'points', '95 % interval', 'p', ''];
  const detail = verdict.detail && el('p', {}, verdict.detail);
  const tiers = verdict.tiers && table(head, verdict.tiers.map(tierRow));
  const text = el('div', {}, el('b', {}, verdict.title), detail, tiers);
  return el('div', { class: `verdict ${verdict.tone}` }, toneSign(verdict.tone), text);
}

function toneSign(tone) {
  const [sign, word] = SIGNS[tone];
  return el('span', { class: 'sign', role: 'img', 'aria-label': word, title: word }, sign);
}

function tierRow({ tier, problems, before, after, interval, p_value: p, tone }) {
  const points = (value) => `${value > 0 ? '+' : ''}${(100 * value).toFixed(1)}`;
  const range = interval ? `${points(interval.low)} to ${points(interval.high)}` : '–';
  const chance = p === null ? '–' : p < 0.001 ? '< 0.001' : p.toFixed(3);
  const cells = [tier, problems, percent(before), percent(after), points(after - before), range, chance];
  return [...cells.map((text) => el('td', {}, text)), el('td', { class: tone }, toneSign(tone))];
}
