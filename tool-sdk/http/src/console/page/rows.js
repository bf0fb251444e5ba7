// Rows of lists, the two panes of a view, and what several views show of a call.

import { h, icon, replaceChildren } from './dom.js';
import { STATE_NAMES, categoryName, dateText, exitProblem, headlineOf, timeText } from './headline.js';
import { visibleNodes } from './visible_text.js';

// Returns a list beside a detail; on narrow screens one of the two at a time.
export function twoPanes({ title, tools, backTo, label }) {
  const list = h('div', { class: 'list', role: 'navigation', 'aria-label': label });
  const detail = h('section', { class: 'detail', 'aria-label': 'Details' });
  const element = h('div', { class: 'panes' },
    h('div', { class: 'pane-list' }, h('div', { class: 'view-head' }, h('h1', {}, title), tools), list),
    h('div', { class: 'pane-detail' }, h('a', { class: 'back', href: backTo }, icon('back'), 'Back'), detail));
  return { element, list, detail };
}

// Updates the children of a list in place, so that focus and scrolling stay.
export function updateRows(list, items, keyOf, makeRow, fillRow) {
  const old = new Map([...list.children].filter((it) => it.dataset.key).map((it) => [it.dataset.key, it]));
  let at = null;
  for (const item of [...items].reverse()) {
    const key = keyOf(item);
    const row = old.get(key) ?? makeRow(item);
    row.dataset.key = key;
    old.delete(key);
    fillRow(row, item);
    if (row.nextSibling !== at || row.parentNode !== list) list.insertBefore(row, at);
    at = row;
  }
  for (const row of old.values()) row.remove();
  for (const child of [...list.children]) if (!child.dataset.key && items.length) child.remove();
}

export function stateBadge(call) {
  const problem = exitProblem(call);
  return h('span', { class: `state state-${problem ? 'failed' : call.state}`, data: { status: call.state } }, h('span', { class: 'dot' }), problem ?? STATE_NAMES[call.state] ?? call.state);
}

// When something happened, short or in full; nothing where that is not known.
export function moment(at, { isFull = false } = {}) {
  return at ? h('time', { datetime: new Date(at).toISOString(), title: dateText(at) }, isFull ? dateText(at) : timeText(at)) : undefined;
}

export function callTitle(call) {
  const { name, detail, isSummary, notes } = headlineOf(call);
  return [h('span', { class: 'call-name' }, visibleNodes(name)), detail && h('span', { class: `call-detail${isSummary ? '' : ' mono'}` }, visibleNodes(detail)),
    notes.map((it) => h('span', { class: 'call-note' }, visibleNodes(it)))];
}

export function riskBadge(risk, isDangerous) {
  const names = { read: 'Reads', write: 'Writes', execute: 'Runs commands', network: 'Network', destructive: 'Destroys' };
  const kind = isDangerous ? 'bad' : risk?.class === 'read' ? 'good' : 'warn';
  return [h('span', { class: `badge ${kind}` }, names[risk?.class] ?? risk?.class ?? 'unknown'), isDangerous && h('span', { class: 'badge bad' }, 'Dangerous')];
}

// Facts in pairs of a name and a value.
export function facts(pairs) {
  return h('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== undefined && value !== '' && value !== null)
    .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value instanceof Node || Array.isArray(value) ? value : visibleNodes(String(value))))));
}

export function showError(element, error) {
  replaceChildren(element, h('div', { class: 'alert', role: 'alert' }, visibleNodes(error.message)));
}

// Returns the tabs of parts, `{ title, element }`, the first one selected.
export function tabs(parts, label) {
  const panel = h('div', { class: 'tab-panel', role: 'tabpanel', tabindex: -1 });
  const buttons = parts.map((part, index) => h('button', { type: 'button', role: 'tab', class: 'tab', onclick: () => select(index), onkeydown: (event) => move(event, index) }, part.title));
  const select = (index) => {
    buttons.forEach((it, at) => {
      it.setAttribute('aria-selected', String(at === index));
      it.tabIndex = at === index ? 0 : -1;
    });
    panel.setAttribute('aria-label', parts[index].title);
    panel.replaceChildren(parts[index].element);
  };
  const move = (event, index) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (index + step + parts.length) % parts.length;
    select(next);
    buttons[next].focus();
    event.preventDefault();
  };
  select(0);
  return h('div', { class: 'tabs' }, h('div', { class: 'tab-list', role: 'tablist', 'aria-label': label }, buttons), panel);
}

export { categoryName };
