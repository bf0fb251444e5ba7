// JSON as a tree that opens and closes, and flat records as a table.

import { button, h } from './dom.js';
import { visibleNodes } from './visible_text.js';

const MAX_ITEMS = 500;

// Returns the tree of a value; the first `open` levels are open. `cut` gets the lists and objects of
// which only a part is shown, each until the user asks for the rest of it.
export function jsonTree(value, { open = 2, cut = new Set() } = {}) {
  addCut(value, cut);
  return h('div', { class: 'json mono' }, node(undefined, value, open, cut));
}

function addCut(value, cut) {
  if (value === null || typeof value !== 'object') return;
  const items = Object.values(value);
  if (items.length > MAX_ITEMS) cut.add(value);
  for (const item of items) addCut(item, cut);
}

function node(key, value, open, cut) {
  const label = key === undefined ? undefined : [h('span', { class: 'json-key' }, visibleNodes(String(key))), ': '];
  if (value === null || typeof value !== 'object') {
    return h('div', { class: 'json-leaf' }, label, scalar(value));
  }
  const entries = Object.entries(value);
  const isArray = Array.isArray(value);
  if (!entries.length) return h('div', { class: 'json-leaf' }, label, isArray ? '[]' : '{}');
  const count = isArray ? `${entries.length} items` : `${entries.length} members`;
  const details = h('details', { class: 'json-node' }, h('summary', {}, label, h('span', { class: 'json-count' }, isArray ? `[${count}]` : `{${count}}`)));
  const show = (part) => { for (const [name, item] of part) details.append(node(name, item, open - 1, cut)); };
  const fill = () => {
    if (details.childElementCount > 1) return;
    show(entries.slice(0, MAX_ITEMS));
    if (entries.length <= MAX_ITEMS) return;
    const more = button(`… ${entries.length - MAX_ITEMS} more`, () => {
      more.remove();
      show(entries.slice(MAX_ITEMS));
      cut.delete(value);
    }, { kind: 'small', data: { action: 'more' } });
    details.append(more);
  };
  details.open = open > 0;
  if (details.open) fill();
  details.addEventListener('toggle', fill);
  return details;
}

function scalar(value) {
  if (typeof value === 'string') return h('span', { class: 'json-string' }, '"', visibleNodes(value), '"');
  return h('span', { class: `json-${value === null ? 'null' : typeof value}` }, String(value));
}

// Whether the value is a list of records that a table shows better than a tree.
export function isTable(value) {
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_ITEMS
    && value.every((row) => row && typeof row === 'object' && !Array.isArray(row))
    && columnsOf(value).length <= 8;
}

const columnsOf = (rows) => [...new Set(rows.flatMap((row) => Object.keys(row)))];

export function recordTable(rows, caption) {
  const columns = columnsOf(rows);
  const cell = (value) => h('td', {}, value === undefined ? '' : visibleNodes(typeof value === 'string' ? value : JSON.stringify(value)));
  return h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', { class: 'table' }, h('caption', { class: 'hidden-label' }, caption),
      h('thead', {}, h('tr', {}, columns.map((it) => h('th', { scope: 'col' }, visibleNodes(it))))),
      h('tbody', {}, rows.map((row) => h('tr', {}, columns.map((it) => cell(row[it])))))));
}
