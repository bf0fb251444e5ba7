// One call: what it is, how far it is, its result, its events; cancel, repeat and copy.

import { terminal } from './ansi.js';
import { copyButtons } from './copy_as.js';
import { button, h, icon, replaceChildren } from './dom.js';
import { clientOf, durationText, originOf, personOf } from './headline.js';
import { jsonTree } from './json_tree.js';
import { displayElement, resultParts } from './result_view.js';
import { facts, moment, showError, stateBadge, tabs } from './rows.js';
import { cancelCall, isRunning, readResult, state, subscribe } from './store.js';
import { visibleNodes } from './visible_text.js';
import { openTool } from './view_tools.js';

// Returns the panel of a call, which follows it until it is closed.
export function callPanel(id, { withHead = false, onFaults } = {}) {
  const head = h('div', { class: 'call-head' });
  const live = h('div', { class: 'call-live' });
  const body = h('div', { class: 'call-body' });
  const message = h('div', { role: 'alert' });
  const cancel = button('Cancel', stop, { iconName: 'stop', kind: 'small danger', data: { action: 'cancel' } });
  const element = h('div', { class: 'call-panel', data: { call: id, status: 'pending' } }, head, message, live, body);
  let hasResult = false;
  let isClosed = false;
  let seenEvents = -1;

  async function stop() {
    cancel.disabled = true;
    try {
      await cancelCall(state.calls.get(id));
    } catch (error) {
      cancel.disabled = false;
      if (error.status !== 409) showError(message, error);
    }
  }

  function update() {
    const call = state.calls.get(id);
    if (!call || isClosed) return;
    element.dataset.status = call.state;
    replaceChildren(head, stateBadge(call), h('span', { class: 'call-time' }, durationText(call.elapsed)), call.at && h('span', { class: 'muted' }, moment(call.at)),
      call.state === 'waiting' && h('a', { class: 'button small', href: '#/inbox' }, icon('inbox'), 'Decide in the inbox'),
      isRunning(call) && cancel);
    if (isRunning(call)) showLive(call);
    else if (!hasResult) {
      hasResult = true;
      showResult(call);
    }
    if (withHead && seenEvents !== call.events.length) seenEvents = call.events.length;
  }

  function showLive(call) {
    const { done, total, message: activity } = call.progress ?? {};
    const bar = call.progress && h('div', { class: 'progress' }, h('progress', { max: total ?? undefined, value: total ? done : undefined, 'aria-label': 'Progress' }), h('span', {}, visibleNodes(activity ?? '')));
    replaceChildren(live, bar, call.output && terminal(call.output, 'Output so far'));
  }

  async function showResult(call) {
    replaceChildren(live);
    const { response, reason } = await readResult(call);
    if (isClosed) return;
    const parts = call.state === 'completed' ? successParts(call, response, reason) : failureParts(call, response);
    parts.push({ title: `Events (${call.events.length})`, element: eventList(call) });
    replaceChildren(body, tabs(parts, 'Parts of the result'));
    if (response?.faults?.length) onFaults?.(response.faults);
  }

  update();
  const unsubscribe = subscribe((parts) => { if (parts.has('calls')) update(); });
  return { element, close: () => { isClosed = true; unsubscribe(); } };
}

function successParts(call, response, reason) {
  if (response) return resultParts(response);
  const shown = displayElement(call.data, {}) ?? (call.data ? jsonTree(call.data) : undefined) ?? (call.output ? terminal(call.output) : undefined);
  return [{ title: 'Result', element: h('div', {}, h('p', { class: 'note' }, reason, shown && ' This is what its events tell.'), shown) }];
}

function failureParts(call, response) {
  const text = response?.error ?? call.message ?? '';
  const problem = h('div', { class: 'problem' }, h('p', { class: 'problem-text' }, visibleNodes(text)),
    response?.suggestion && h('p', { class: 'problem-hint' }, visibleNodes(response.suggestion)),
    response?.faults?.length > 0 && h('ul', {}, response.faults.map((it) => h('li', {}, h('code', {}, visibleNodes(it.pointer || '/')), ' ', visibleNodes(it.message)))));
  const parts = [{ title: 'Problem', element: problem }];
  if (call.output) parts.push({ title: 'Output', element: terminal(call.output) });
  if (response) parts.push({ title: 'JSON', element: jsonTree(response) });
  return parts;
}

function eventList(call) {
  return h('ol', { class: 'events' }, call.events.map((event) => {
    const { type, seq, ...rest } = event;
    const shown = Object.fromEntries(Object.entries(rest).filter(([key]) => !['call', 'session', 'tool', 'display', 'source', 'severity', 'request', 'user'].includes(key)));
    return h('li', {}, h('span', { class: 'event-seq' }, seq), h('details', {}, h('summary', {}, type.replaceAll('_', ' ')), jsonTree(shown)));
  }));
}

// Returns what a page about a call shows above its result.
export function callFacts(call) {
  const shortened = (text) => text && h('span', { class: 'mono', title: text }, visibleNodes(text.length > 24 ? `${text.slice(0, 20)}…` : text));
  return h('div', {},
    facts([['Tool', h('a', { class: 'mono', href: `#/tools/${encodeURIComponent(call.tool)}` }, visibleNodes(call.tool))], ['From', originOf(call)], ['Time', moment(call.at, { isFull: true })], ['For', personOf(call)], ['Client', clientOf(call, state.session)], ['Agent', call.agent], ['Conversation', call.conversation], ['Project', call.project], ['Session', shortened(call.session)], ['Call', shortened(call.id)], ['Started by', call.parent && h('a', { href: `#/calls/${call.parent}` }, shortened(call.parent))]]),
    h('div', { class: 'run-bar' },
      button('Use these arguments', () => openTool(call.tool, call.arguments ?? {}), { iconName: 'repeat' }),
      copyButtons(call.tool, () => call.arguments ?? {})),
    h('h2', { class: 'section-title' }, 'Arguments'),
    call.arguments ? argumentList(call.arguments) : h('p', { class: 'muted' }, 'They are not known here.'));
}

// Arguments one below the other: texts with every character of theirs, others as a tree. Adds to `cut`
// the lists of which a part is shown only when the user asks for the rest.
export function argumentList(args, cut) {
  const entries = args && typeof args === 'object' && !Array.isArray(args) ? Object.entries(args) : [['', args]];
  if (!entries.length) return h('p', { class: 'muted' }, 'None.');
  return h('dl', { class: 'argument-list' }, entries.map(([name, value]) => h('div', {}, h('dt', { class: 'mono' }, visibleNodes(name)),
    h('dd', {}, typeof value === 'string' ? argumentText(name, value) : jsonTree(value, { cut })))));
}

function argumentText(name, text) {
  if (!text.includes('\n')) return h('code', { class: 'value' }, visibleNodes(text));
  return h('pre', { class: 'text', tabindex: 0, role: 'region', 'aria-label': name || 'Text' }, visibleNodes(text));
}
