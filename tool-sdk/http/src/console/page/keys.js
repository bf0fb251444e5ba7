// Keyboard shortcuts. Letters count only outside of inputs.

import { button, h } from './dom.js';

const actions = new Map();
// Keys that may be held down. An answer needs a press of its own.
const REPEATABLE = ['j', 'k'];

// Sets what a key does while a view is shown; returns a function that ends it.
export function bindKeys(bindings) {
  for (const [key, action] of Object.entries(bindings)) actions.set(key, action);
  return () => { for (const key of Object.keys(bindings)) actions.delete(key); };
}

export function listenForKeys({ views, help }) {
  let isGoing = false;
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]');
    if (isTyping) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    if (document.querySelector('dialog[open]')) return;
    if (event.repeat && !REPEATABLE.includes(event.key)) return;
    const view = isGoing && Object.entries(views).find(([, it]) => it.key === event.key);
    isGoing = false;
    if (view) location.hash = `#/${view[0]}`;
    else if (event.key === 'g') isGoing = true;
    else if (event.key === '?') help.showModal();
    else if (event.key === '/') document.querySelector('main input[type=search]')?.focus();
    else if (actions.has(event.key)) actions.get(event.key)();
    else return;
    event.preventDefault();
  });
}

// Returns the dialog that lists the shortcuts.
export function helpDialog(views) {
  const rows = [
    ...Object.values(views).map((it) => [`g ${it.key}`, it.title]),
    ['/', 'Search'],
    ['j, k', 'Next, previous request, call or tool'],
    ['Shift+A', 'Approve once'],
    ['Shift+S', 'Show the patterns; pressed again, allow them for the session'],
    ['Shift+E', 'Edit the arguments'],
    ['Shift+R', 'Reject: write a reason, or press Reject'],
    ['Ctrl+Enter', 'Reject with the reason; answer a question'],
    ['?', 'This list'],
  ];
  const dialog = h('dialog', { class: 'dialog', 'aria-label': 'Keyboard shortcuts' },
    h('h2', {}, 'Keyboard shortcuts'),
    h('dl', { class: 'keys' }, rows.map(([keys, text]) => h('div', {}, h('dt', {}, keys.split(/ |, /).map((it) => [h('kbd', {}, it), ' '])), h('dd', {}, text)))),
    h('div', { class: 'dialog-foot' }, button('Close', () => dialog.close(), { kind: 'primary' })));
  return dialog;
}

// Selects the next or the previous row of a list of links.
export function moveInList(list, step) {
  const rows = [...list.querySelectorAll('a.row')];
  if (!rows.length) return;
  const at = rows.findIndex((it) => it.getAttribute('aria-current') === 'true');
  const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)] ?? rows[0];
  location.hash = next.getAttribute('href');
  next.focus({ preventScroll: false });
}
