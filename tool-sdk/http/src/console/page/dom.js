// Builds elements. Every value becomes text or an attribute, never markup.

const SVG = 'http://www.w3.org/2000/svg';

// h('button', { class: 'primary', onclick: run, 'aria-label': 'Run' }, 'Run')
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes ?? {});
  append(element, children);
  return element;
}

function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name === 'value') element.value = value;
    else if (name === 'checked' || name === 'disabled' || name === 'hidden') element[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function replaceChildren(element, ...children) {
  element.textContent = '';
  append(element, children);
}

// Icons are paths of a 16 by 16 grid, drawn as strokes.
const ICONS = {
  inbox: 'M2 9h3.5l1 2h3l1-2H14M2 9l2-6h8l2 6v4H2z',
  tools: 'M10 2.5a3.5 3.5 0 0 0-3.2 5L2.5 11.8l1.7 1.7 4.3-4.3a3.5 3.5 0 0 0 4.7-4.4L11 7 9 5l2.2-2.2A3.5 3.5 0 0 0 10 2.5z',
  calls: 'M2 4h3M2 8h5M2 12h3M8 4h6M10 8h4M8 12h6',
  permissions: 'M8 1.8 13.2 4v4c0 3-2.2 5.2-5.2 6.2C5 13.2 2.800 11 2.800 8V4zM5.800 8l1.600 1.600L10.400 6.500',
  servers: 'M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.01M5 11h.01',
  audit: 'M4 2h6l3 3v9H4zM10 2v3h3M6.500 8h4M6.500 11h4',
  search: 'M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9zM10.300 10.300 14 14',
  play: 'M4.500 2.800v10.400L13 8z',
  stop: 'M4 4h8v8H4z',
  check: 'M3 8.500 6.500 12 13 4.500',
  cross: 'M4 4l8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  back: 'M10 3 5 8l5 5',
  theme: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
  bell: 'M8 2a4 4 0 0 0-4 4v3l-1.300 2h10.600L12 9V6a4 4 0 0 0-4-4zM6.500 13.500a1.600 1.600 0 0 0 3 0',
  keyboard: 'M1.500 4h13v8h-13zM4 6.500h.01M6.500 6.500h.01M9 6.500h.01M11.800 6.500h.01M4.500 9.500h7',
  more: 'M2.500 8h1M7.500 8h1M12.500 8h1',
  leave: 'M6 2H2.500v12H6M10.500 5l3 3-3 3M13 8H6',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  repeat: 'M3 8a5 5 0 0 1 9-3M12.500 2v3h-3M13 8a5 5 0 0 1-9 3M3.500 14v-3h3',
};

export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

export function button(label, onclick, { kind = '', iconName, ...attributes } = {}) {
  return h('button', { type: 'button', class: `button ${kind}`, onclick, ...attributes },
    iconName && icon(iconName), h('span', {}, label));
}

export function emptyState(title, text) {
  return h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, title), h('p', {}, text));
}

let nextId = 0;

// Returns an id for an element that a label or a description refers to.
export function uniqueId(prefix) {
  nextId += 1;
  return `${prefix}-${nextId}`;
}
