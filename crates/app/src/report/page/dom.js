'use strict';
// Making elements, and writing numbers. Texts only ever become text nodes and attributes, never markup.

const NAMESPACE = 'http://www.w3.org/2000/svg';
const byId = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false),
  );
  return element;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(NAMESPACE, tag), attributes, children);

const quiet = (...children) => el('p', { class: 'quiet' }, ...children);

// A table that scrolls where it is too wide. A head is a list of texts, a row a list of cells.
function table(head, rows) {
  const titles = head.map((title) => el('th', { scope: 'col' }, title));
  const body = rows.map((cells) => el('tr', {}, cells));
  return el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, el('tr', {}, titles)), el('tbody', {}, body)));
}

// A list to choose from, of values with their titles. It is drawn anew with its section, and keeps the focus.
function picker(id, label, values, chosen, choose) {
  const option = ([value, title]) => el('option', { value, selected: value === chosen }, title);
  const onchange = (event) => {
    choose(event.target.value);
    byId(id).focus();
  };
  return el('label', {}, label, ' ', el('select', { id, onchange }, values.map(option)));
}

function checkbox(id, checked, choose, ...label) {
  const onchange = (event) => {
    choose(event.target.checked);
    byId(id).focus();
  };
  return el('label', {}, el('input', { id, type: 'checkbox', checked, onchange }), label);
}

// Series and paths are told apart by colour and by dash.
const COLOURS = 7;
const DASHES = ['', '7 3', '2 3', '9 3 2 3', '4 2', '1 2', '12 4'];
const colour = (index) => `var(--c${index % COLOURS})`;
const dash = (index) => DASHES[index % DASHES.length];

const percent = (value, digits = 1) => `${(100 * value).toFixed(digits)} %`;

function number(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString('en');
  return String(+value.toPrecision(3));
}

function duration(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
