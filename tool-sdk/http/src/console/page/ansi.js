// Terminal output: colours and styles become classes, every other control stays visible.

import { h } from './dom.js';
import { visibleNodes } from './visible_text.js';

const SGR = /\u001b\[([0-9;:]*)m/g;
// Other sequences, such as cursor moves and titles, which have no effect in a page.
const OTHER = /\u001b(?:\[[0-9;:?<=>]*[ -/]*[@-ln-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_=>])/g;

// Returns a terminal with the text.
export function terminal(text, label = 'Terminal output') {
  return h('pre', { class: 'terminal', tabindex: 0, role: 'region', 'aria-label': label }, terminalNodes(text));
}

export function terminalNodes(text) {
  const clean = String(text).replace(OTHER, '').replaceAll('\r\n', '\n').split('\n').map(afterReturn).join('\n');
  const nodes = [];
  let style = {};
  let last = 0;
  for (const match of clean.matchAll(SGR)) {
    addSpan(nodes, clean.slice(last, match.index), style);
    style = applySgr(style, match[1]);
    last = match.index + match[0].length;
  }
  addSpan(nodes, clean.slice(last), style);
  return nodes;
}

// Returns what is left of a line whose start was written over after a carriage return.
const afterReturn = (line) => (line.length < 2 ? line : line.slice(line.lastIndexOf('\r', line.length - 2) + 1));

function addSpan(nodes, text, style) {
  if (!text) return;
  const classes = Object.entries(style).filter(([, value]) => value !== undefined)
    .map(([key, value]) => (value === true ? `t-${key}` : `t-${key}-${value}`));
  const content = visibleNodes(text);
  nodes.push(classes.length ? h('span', { class: classes.join(' ') }, content) : content);
}

function applySgr(style, codes) {
  let next = { ...style };
  const list = (codes || '0').split(/[;:]/).map(Number);
  for (let at = 0; at < list.length; at += 1) {
    const code = list[at];
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 22) next.bold = next.dim = undefined;
    else if (code === 23) next.italic = undefined;
    else if (code === 24) next.underline = undefined;
    else if (code === 27) next.inverse = undefined;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code === 39) next.fg = undefined;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 49) next.bg = undefined;
    else if (code === 38 || code === 48) {
      const colour = list[at + 1] === 5 ? nearest256(list[at + 2]) : nearestRgb(list.slice(at + 2, at + 5));
      next[code === 38 ? 'fg' : 'bg'] = colour;
      at += list[at + 1] === 5 ? 2 : 4;
    }
  }
  return next;
}

// The sixteen colours suffice to tell things apart in both themes.
function nearest256(index) {
  if (index < 16) return index;
  if (index >= 232) return index > 243 ? 7 : 8;
  const cube = index - 16;
  return nearestRgb([Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51]);
}

function nearestRgb([red = 0, green = 0, blue = 0]) {
  const bit = (value) => (value > 100 ? 1 : 0);
  const bright = Math.max(red, green, blue) > 200 ? 8 : 0;
  return bit(red) + 2 * bit(green) + 4 * bit(blue) + bright;
}
