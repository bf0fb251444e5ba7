// The same call as a command of curl, of the program, and as JSON.

import { button, h } from './dom.js';
import { state } from './store.js';

const quote = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

export function asCurl(tool, args) {
  return `curl -H "Authorization: Bearer $TOKEN" --json ${quote(JSON.stringify(args))} \\\n  ${location.origin}/v1/tools/${encodeURIComponent(tool)}`;
}

export const asCommand = (tool, args) => `${state.title} call ${tool} ${quote(JSON.stringify(args))}`;

export const asJson = (tool, args) => JSON.stringify({ tool, arguments: args }, null, 2);

// Returns the buttons that copy a call.
export function copyButtons(tool, readArguments) {
  const said = h('span', { class: 'copied', role: 'status' });
  const copy = (write) => async () => {
    try {
      await navigator.clipboard.writeText(write(tool, readArguments()));
      said.textContent = 'Copied';
    } catch {
      said.textContent = 'The browser does not allow copying';
    }
    setTimeout(() => { said.textContent = ''; }, 2500);
  };
  return h('div', { class: 'copy-as', role: 'group', 'aria-label': 'Copy the call' },
    h('span', { class: 'muted' }, 'Copy as'),
    button('curl', copy(asCurl), { kind: 'small' }),
    button('CLI', copy(asCommand), { kind: 'small' }),
    button('JSON', copy(asJson), { kind: 'small' }), said);
}
