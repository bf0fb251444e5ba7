// Shows text so that what is read is what is there: control, bidi and invisible characters are
// escaped visibly, never removed.

const CODE = (char) => `\\u{${char.codePointAt(0).toString(16)}}`;
// Controls but tab and line feed, bidi and other format characters, odd blanks, private use, tags
// and variation selectors.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ue000-\uf8ff\ud800-\udfff]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\u{f0000}-\u{10ffff}]/gu;

// Returns the text with visible escapes.
export function visible(text) {
  return String(text).replace(HIDDEN, CODE);
}

// Returns whether the text has characters that would be hidden or change what is read.
export function hasHidden(text) {
  return String(text).search(HIDDEN) >= 0;
}

// Returns whether a text in the JSON value, or a name in it, has such characters.
export function hasHiddenWithin(value) {
  if (typeof value === 'string') return hasHidden(value);
  return Boolean(value) && typeof value === 'object'
    && Object.entries(value).some(([name, item]) => hasHidden(name) || hasHiddenWithin(item));
}

// Returns the nodes of the text, with each escape marked.
export function visibleNodes(text) {
  const nodes = [];
  let last = 0;
  for (const match of String(text).matchAll(HIDDEN)) {
    if (match.index > last) nodes.push(text.slice(last, match.index));
    const mark = document.createElement('span');
    mark.className = 'escape';
    mark.textContent = CODE(match[0]);
    nodes.push(mark);
    last = match.index + match[0].length;
  }
  if (last < text.length) nodes.push(text.slice(last));
  return nodes;
}

// Returns the first line, cut at `max` characters.
export function firstLine(text, max = 200) {
  const line = String(text).split('\n', 1)[0];
  return line.length > max ? `${line.slice(0, max)}…` : line;
}
