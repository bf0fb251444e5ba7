// Results by kind of their display data: text with line numbers, diffs, search hits, terminal
// output, images, tables and trees.

import { terminal } from './ansi.js';
import { diffView } from './diff.js';
import { h } from './dom.js';
import { countText } from './headline.js';
import { isTable, jsonTree, recordTable } from './json_tree.js';
import { hasHidden, visibleNodes } from './visible_text.js';

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

// Returns the parts of a result: `{ title, element }`, the best one first.
export function resultParts(result) {
  const parts = [];
  const display = result.display ?? {};
  const main = displayElement(display, result);
  if (main) parts.push({ title: 'Result', element: main });
  const images = (result.attachments ?? []).map(attachment).filter(Boolean);
  if (images.length) parts.push({ title: 'Attachments', element: h('div', { class: 'attachments' }, images) });
  if (result.structured !== undefined && result.structured !== null) {
    parts.push({ title: 'Data', element: structured(result.structured) });
  }
  if (typeof result.text === 'string') {
    const title = parts.length ? 'Text for the model' : 'Result';
    parts.push({ title, element: plainText(result.text) });
  }
  parts.push({ title: 'JSON', element: jsonTree(result) });
  return parts;
}

// Returns the element for display data; `undefined` where a text says as much.
export function displayElement(display, result = {}) {
  if (typeof display?.unified === 'string' && display.unified) return diffView(display.unified, { path: display.path });
  switch (display?.type) {
    case 'shell': return shell(display);
    case 'search': return searchHits(display);
    case 'file': return display.operation === 'read' && result.text ? numberedText(result.text) : undefined;
    case 'outline': return isTable(display.symbols) ? recordTable(display.symbols, 'Symbols') : undefined;
    default: return displayList(display);
  }
}

// Display data with one list of records is a table, of any tool.
function displayList(display) {
  const lists = Object.entries(display ?? {}).filter(([, value]) => isTable(value));
  return lists.length === 1 ? recordTable(lists[0][1], lists[0][0]) : undefined;
}

function structured(value) {
  return isTable(value) ? recordTable(value, 'Data') : jsonTree(value);
}

export function plainText(text) {
  if (text === '') return h('p', { class: 'muted' }, 'The result is an empty text.');
  return h('div', {}, hiddenNote(text),
    h('pre', { class: 'text', tabindex: 0, role: 'region', 'aria-label': 'Text' }, /\u001b\[/.test(text) ? terminal(text).childNodes : visibleNodes(text)));
}

function hiddenNote(text) {
  return hasHidden(text) && !/\u001b\[/.test(text)
    ? h('p', { class: 'note' }, 'The text has invisible or control characters; they are shown as escapes.') : undefined;
}

// Text whose lines begin with their number, as tools number them for models.
function numberedText(text) {
  const lines = text.replace(/\n$/, '').split('\n');
  const rows = lines.map((line) => {
    const [, number, content] = /^\s*(\d+)[:\t|] ?(.*)$/.exec(line) ?? [undefined, '', line];
    return h('div', { class: number ? 'line' : 'line remark' }, h('span', { class: 'line-number' }, number), h('span', { class: 'line-text' }, visibleNodes(content)));
  });
  return h('div', { class: 'lines', tabindex: 0, role: 'region', 'aria-label': 'File content' }, rows);
}

function shell(display) {
  const code = display.exit_code;
  const status = display.is_background ? 'running in the background' : code === undefined || code === null ? 'still running' : `exit code ${code}`;
  return h('div', { class: 'shell' },
    h('div', { class: 'shell-head' }, h('code', { class: 'command' }, visibleNodes(display.command ?? '')),
      h('span', { class: `badge ${code ? 'bad' : 'good'}` }, status)),
    display.stdout || !display.stderr ? terminal(display.stdout || '(no output)', 'Standard output') : undefined,
    display.stderr ? [h('h4', { class: 'stream-name' }, 'Standard error'), terminal(display.stderr, 'Standard error')] : undefined);
}

function searchHits(display) {
  const matches = (display.matches ?? []).filter((it) => it && typeof it === 'object');
  if (!matches.length) return h('p', { class: 'muted' }, 'No matches.');
  const files = new Map();
  for (const match of matches) {
    const name = match.file ?? match.url ?? match.title ?? '';
    files.set(name, [...(files.get(name) ?? []), match]);
  }
  const hit = (match) => h('div', { class: 'line' }, h('span', { class: 'line-number' }, match.line ?? ''),
    h('span', { class: 'line-text' }, visibleNodes(match.content ?? match.snippet ?? '')));
  const group = ([name, hits]) => h('div', { class: 'hits' }, h('div', { class: 'hits-file mono' }, visibleNodes(name)),
    hits.filter((it) => it.line !== undefined || it.content).map(hit));
  return h('div', {}, h('p', { class: 'muted' }, `${countText(display.total_matches ?? matches.length, 'match', 'matches')}${display.truncated ? ', not all shown' : ''}`),
    [...files].map(group));
}

function attachment(item) {
  const name = item.title ?? item.name ?? item.mime;
  if (item.base64 && IMAGES.includes(item.mime)) {
    return h('figure', {}, h('img', { src: `data:${item.mime};base64,${item.base64}`, alt: item.description ?? name }), h('figcaption', {}, visibleNodes(name)));
  }
  // Other content, HTML and SVG among it, is shown as its source.
  const source = item.base64 && /^text\/|json|xml|svg/.test(item.mime) ? decodeText(item.base64) : undefined;
  return h('figure', {}, h('figcaption', {}, visibleNodes(`${name} (${item.mime})`)),
    source !== undefined ? plainText(source) : h('p', { class: 'muted' }, visibleNodes(item.uri ?? 'binary content')));
}

function decodeText(base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}
