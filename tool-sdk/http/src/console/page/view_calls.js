// The live timeline of all calls of the server, the newest first, and one call beside it.

import { callFacts, callPanel } from './call_panel.js';
import { emptyState, h, icon, replaceChildren } from './dom.js';
import { clientOf, durationText, exitProblem, originOf } from './headline.js';
import { bindKeys, moveInList } from './keys.js';
import { callTitle, moment, stateBadge, twoPanes, updateRows } from './rows.js';
import { isRunning, state, subscribe } from './store.js';

const FILTERS = {
  all: ['All', () => true],
  running: ['Running', isRunning],
  problems: ['Problems', (call) => ['failed', 'denied', 'timed_out', 'aborted'].includes(call.state) || exitProblem(call) !== undefined],
  mine: ['From here', (call) => call.session === state.session],
};

export function showCalls(main) {
  const search = h('input', { type: 'search', class: 'input search', placeholder: 'Search calls', 'aria-label': 'Search calls', oninput: () => renderList() });
  let filter = 'all';
  const filters = h('div', { class: 'segments', role: 'group', 'aria-label': 'Which calls' }, Object.entries(FILTERS).map(([name, [title]]) => h('button', { type: 'button', class: 'segment', 'aria-pressed': String(name === filter), onclick: (event) => {
    filter = name;
    for (const it of filters.children) it.setAttribute('aria-pressed', String(it === event.currentTarget));
    renderList();
  } }, title)));
  const { element, list, detail } = twoPanes({ title: 'Calls', label: 'Calls, the newest first', backTo: '#/calls', tools: h('div', { class: 'view-tools' }, h('div', { class: 'search-box' }, icon('search'), search), filters) });
  main.append(element);
  let selected;
  let panel;
  let shownId;

  function renderList() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...state.calls.values()].filter(FILTERS[filter][1])
      .filter((call) => words.every((word) => searchText(call).includes(word)))
      .sort((a, b) => order(b) - order(a));
    if (!found.length) return replaceChildren(list, emptyState(state.calls.size ? 'No call fits' : 'No calls yet', state.calls.size ? 'Change the search or the filter.' : 'Calls of every client appear here as they happen.'));
    updateRows(list, found, (call) => call.id, makeRow, fillRow);
  }

  const makeRow = (call) => h('a', { class: 'row', href: `#/calls/${encodeURIComponent(call.id)}`, data: { call: call.id } });
  const fillRow = (row, call) => {
    // Nothing is drawn again that did not change.
    const version = `${call.state} ${exitProblem(call)} ${call.elapsed} ${call.at} ${call.arguments !== undefined} ${call.id === selected}`;
    if (row.dataset.version === version) return;
    row.dataset.version = version;
    row.dataset.status = call.state;
    if (call.id === selected) row.setAttribute('aria-current', 'true');
    else row.removeAttribute('aria-current');
    // Calls of this page are the usual ones; of others it matters whose they are.
    const client = call.session === state.session ? undefined : call.user ?? clientOf(call, state.session);
    const from = [originOf(call), call.agent, client].filter(Boolean).join(' · ');
    replaceChildren(row, h('span', { class: 'row-main' }, h('span', { class: 'row-title' }, callTitle(call)),
      h('span', { class: 'row-note' }, stateBadge(call), from && h('span', {}, from), call.elapsed !== undefined && h('span', {}, durationText(call.elapsed)))),
    h('span', { class: 'row-side' }, moment(call.at)));
  };

  function showDetail() {
    const call = state.calls.get(selected);
    if (call && shownId === selected) return;
    panel?.close();
    panel = undefined;
    shownId = call ? selected : undefined;
    if (!call) return replaceChildren(detail, selected ? emptyState('This call is not known', 'It may be older than the log of the server.') : emptyState('Select a call', 'Its arguments, its result and its events appear here.'));
    panel = callPanel(call.id, { withHead: true });
    replaceChildren(detail, h('article', { class: 'call-page' },
      h('div', { class: 'detail-head' }, h('h2', { class: 'detail-title' }, callTitle(call))),
      callFacts(call), h('h2', { class: 'section-title' }, 'Result'), panel.element));
  }

  function select(id) {
    selected = id;
    renderList();
    showDetail();
  }

  const unbind = bindKeys({ j: () => moveInList(list, 1), k: () => moveInList(list, -1) });
  const unsubscribe = subscribe((parts) => {
    if (!parts.has('calls')) return;
    renderList();
    showDetail();
  });
  return { select, close: () => { unsubscribe(); unbind(); panel?.close(); } };
}

// Calls of an earlier server have no number and come before all others.
const order = (call) => (call.seq ? call.seq + 1e15 : call.at ?? 0);
const searchText = (call) => `${call.tool} ${call.display?.name ?? ''} ${call.summary ?? ''} ${JSON.stringify(call.arguments ?? '')} ${call.agent ?? ''} ${call.state} ${exitProblem(call) ?? ''}`.toLowerCase();
