// Unified diffs, line by line with numbers of both sides.

import { button, h } from './dom.js';
import { visibleNodes } from './visible_text.js';

// More lines are shown after a click, and until then nothing broader than one call can be granted.
const MAX_LINES = 600;

// Returns the element of a diff. `onWhole` is called when all of it can be seen.
export function diffView(unified, { path, onWhole } = {}) {
  const lines = parse(unified);
  const body = h('div', { class: 'diff-lines', role: 'table', 'aria-label': `Changes${path ? ` of ${path}` : ''}` });
  const hidden = Math.max(0, lines.length - MAX_LINES);
  const shown = hidden ? [...lines.slice(0, MAX_LINES - 100), undefined, ...lines.slice(-100)] : lines;
  const showAll = () => {
    body.textContent = '';
    lines.forEach((line) => body.append(lineRow(line)));
    onWhole?.();
  };
  for (const line of shown) {
    body.append(line ? lineRow(line)
      : h('div', { class: 'diff-more' }, button(`Show ${hidden} hidden lines`, showAll)));
  }
  if (!hidden) onWhole?.();
  const added = lines.filter((it) => it.kind === 'add').length;
  const removed = lines.filter((it) => it.kind === 'del').length;
  return h('div', { class: 'diff' },
    h('div', { class: 'diff-head' },
      h('span', { class: 'mono' }, path ? visibleNodes(path) : 'Changes'),
      h('span', { class: 'diff-count' },
        h('span', { class: 'add', 'aria-label': `${added} lines added` }, `+${added}`),
        h('span', { class: 'del', 'aria-label': `${removed} lines removed` }, `−${removed}`))),
    h('div', { class: 'diff-scroll', tabindex: 0, role: 'region', 'aria-label': 'Diff' }, body));
}

function parse(unified) {
  const lines = [];
  let [before, after] = [0, 0];
  let inHunk = false;
  for (const text of String(unified).replace(/\n$/, '').split('\n')) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(text);
    if (hunk) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      inHunk = true;
      lines.push({ kind: 'hunk', text });
    } else if (!inHunk || /^(diff |index |--- |\+\+\+ )/.test(text) && text.startsWith('diff ')) {
      inHunk = false;
      lines.push({ kind: 'file', text });
    } else if (text.startsWith('+')) lines.push({ kind: 'add', text: text.slice(1), after: after++ });
    else if (text.startsWith('-')) lines.push({ kind: 'del', text: text.slice(1), before: before++ });
    else if (text.startsWith('\\')) lines.push({ kind: 'note', text });
    else lines.push({ kind: 'same', text: text.slice(1), before: before++, after: after++ });
  }
  return lines;
}

const SIGNS = { add: '+', del: '−', same: ' ' };

function lineRow(line) {
  if (!SIGNS[line.kind]) {
    return h('div', { class: `diff-line ${line.kind}`, role: 'row' }, h('span', { class: 'diff-text', role: 'cell' }, visibleNodes(line.text)));
  }
  const number = (value) => h('span', { class: 'diff-number', role: 'cell' }, value ?? '');
  return h('div', { class: `diff-line ${line.kind}`, role: 'row' },
    number(line.before), number(line.after),
    h('span', { class: 'diff-sign', role: 'cell' }, SIGNS[line.kind]),
    h('span', { class: 'diff-text', role: 'cell' }, visibleNodes(line.text)));
}
