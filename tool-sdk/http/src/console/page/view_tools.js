// Tools by category with search, and a page for each: documentation, form, run.

import { argumentsEditor } from './arguments_editor.js';
import { ApiError } from './api.js';
import { callPanel } from './call_panel.js';
import { copyButtons } from './copy_as.js';
import { button, emptyState, h, icon, replaceChildren } from './dom.js';
import { categoryName, originOf } from './headline.js';
import { bindKeys, moveInList } from './keys.js';
import { facts, riskBadge, showError, twoPanes } from './rows.js';
import { startCall, state, subscribe } from './store.js';
import { visibleNodes } from './visible_text.js';

// Arguments for the form of a tool, from a call that is to be repeated.
let prefill;

export function openTool(name, args) {
  prefill = { name, args };
  location.hash = `#/tools/${encodeURIComponent(name)}`;
}

export function showTools(main) {
  const search = h('input', { type: 'search', class: 'input search', placeholder: 'Search tools', 'aria-label': 'Search tools', oninput: () => renderList() });
  const count = h('p', { class: 'hidden-label', role: 'status' });
  const { element, list, detail } = twoPanes({ title: 'Tools', label: 'Tools by category', backTo: '#/tools', tools: h('div', { class: 'search-box' }, icon('search'), search, count) });
  main.append(element);
  let selected;
  let page;

  function renderList() {
    if (state.toolsError) return showError(list, state.toolsError);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = state.tools.filter((tool) => words.every((word) => searchText(tool).includes(word)));
    count.textContent = `${found.length} tools`;
    const categories = new Map();
    for (const tool of found) categories.set(tool.category ?? 'other', [...(categories.get(tool.category ?? 'other') ?? []), tool]);
    const groups = [...categories].sort(([a], [b]) => a.localeCompare(b));
    replaceChildren(list, groups.length ? groups.map(([category, tools]) => h('div', { class: 'group' },
      h('h2', { class: 'group-title' }, categoryName(category), h('span', { class: 'group-count' }, tools.length)), tools.map(toolRow)))
      : emptyState('No tool found', 'Search for a part of its name or description.'));
  }

  function toolRow(tool) {
    const isSelected = tool.name === selected;
    return h('a', { class: 'row', href: `#/tools/${encodeURIComponent(tool.name)}`, 'aria-current': isSelected ? 'true' : undefined, data: { tool: tool.name } },
      h('span', { class: 'row-main' }, h('span', { class: 'row-title mono' }, visibleNodes(tool.name)), h('span', { class: 'row-note' }, visibleNodes(summaryOf(tool)))),
      h('span', { class: `risk-dot risk-${tool.risk?.class}`, title: `This tool may ${tool.risk?.class}` }));
  }

  function select(name) {
    selected = name;
    renderList();
    list.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
    page?.close();
    page = undefined;
    const tool = state.tools.find((it) => it.name === name);
    if (!tool) return replaceChildren(detail, name ? emptyState('There is no such tool', 'It may have been removed.') : emptyState('Select a tool', 'Its documentation and a form to call it appear here.'));
    page = toolPage(tool);
    replaceChildren(detail, page.element);
    detail.parentElement.scrollTop = 0;
  }

  const unbind = bindKeys({ j: () => moveInList(list, 1), k: () => moveInList(list, -1) });
  const unsubscribe = subscribe((parts) => { if (parts.has('tools')) renderList(); });
  return { select, close: () => { unsubscribe(); unbind(); page?.close(); } };
}

const searchText = (tool) => `${tool.name} ${(tool.aliases ?? []).join(' ')} ${tool.display?.name ?? ''} ${tool.category ?? ''} ${tool.description ?? ''}`.toLowerCase();
const summaryOf = (tool) => (tool.description ?? '').split('\n', 1)[0];

function toolPage(tool) {
  const result = h('div', { class: 'run-result', role: 'region', 'aria-label': 'Result' });
  const message = h('div', { role: 'alert' });
  const schema = tool.parameters ?? { type: 'object' };
  const value = prefill?.name === tool.name ? prefill.args : exampleFor(schema);
  prefill = undefined;
  const editor = argumentsEditor(schema, { value });
  const hasArguments = Object.keys(schema.properties ?? {}).length > 0 || schema.additionalProperties !== false;
  const runButton = button('Run', run, { kind: 'primary', iconName: 'play', data: { action: 'run' } });
  let panel;

  async function run() {
    message.textContent = '';
    if (!editor.check()) return editor.focusFaults();
    const text = editor.sentText();
    runButton.disabled = true;
    try {
      const id = await startCall(tool.name, text);
      panel?.close();
      panel = callPanel(id, { onFaults: (faults) => editor.showFaults(faults) });
      replaceChildren(result, h('h2', { class: 'section-title' }, 'Result'), panel.element);
      result.scrollIntoView({ block: 'start' });
    } catch (error) {
      if (error instanceof ApiError && error.problem.faults?.length) editor.showFaults(error.problem.faults);
      showError(message, error);
    } finally {
      runButton.disabled = false;
    }
  }

  const origin = originOf(tool);
  const examples = (tool.examples ?? []).map(parseExample).filter(Boolean);
  const element = h('article', { class: 'tool-page', data: { tool: tool.name } },
    h('div', { class: 'detail-head' },
      h('div', {}, h('h2', { class: 'detail-title mono' }, visibleNodes(tool.name)), h('p', { class: 'detail-subtitle' }, visibleNodes(tool.display?.name ?? ''), ' · ', categoryName(tool.category), origin && ` · ${origin}`)),
      h('div', { class: 'badges' }, riskBadge(tool.risk))),
    h('div', { class: 'prose' }, paragraphs(tool.description ?? '')),
    h('details', { class: 'more' }, h('summary', {}, 'About this tool'),
      facts([['Permission', tool.permission], ['Other names', (tool.aliases ?? []).join(', ')], ['Source', origin || 'this program'], ['Runs beside others', tool.parallel ? JSON.stringify(tool.parallel) : undefined], ['Version', tool.version]])),
    h('h2', { class: 'section-title' }, 'Arguments'),
    examples.length > 0 && h('div', { class: 'examples' }, h('span', { class: 'muted' }, 'Fill in'), examples.map((it, index) => button(`Example ${index + 1}`, () => editor.write(it), { kind: 'small' }))),
    hasArguments ? undefined : h('p', { class: 'muted' }, 'This tool has no arguments.'),
    editor.element, message,
    h('div', { class: 'run-bar' }, runButton, copyButtons(tool.name, editor.read)),
    result);
  return { element, close: () => panel?.close() };
}

// Required members with a default get it; nothing else is filled in for the user.
function exampleFor(schema) {
  const value = {};
  for (const name of schema.required ?? []) if (schema.properties?.[name]?.default !== undefined) value[name] = schema.properties[name].default;
  return value;
}

function parseExample(text) {
  try {
    return typeof text === 'string' ? JSON.parse(text) : text.arguments ?? text;
  } catch {
    return undefined;
  }
}

// Paragraphs, lists and code spans of a description, as text.
function paragraphs(text) {
  return text.split(/\n{2,}/).map((block) => {
    const lines = block.split('\n');
    if (lines.every((it) => /^[-*] /.test(it))) return h('ul', {}, lines.map((it) => h('li', {}, codeSpans(it.slice(2)))));
    return h('p', {}, codeSpans(lines.join(' ')));
  });
}

function codeSpans(text) {
  return text.split(/(`[^`]+`)/).map((part) => (part.startsWith('`') && part.length > 2 ? h('code', {}, visibleNodes(part.slice(1, -1))) : visibleNodes(part)));
}

