// The queue of what waits for a person: approval requests and questions of tools.

import { approvalPage } from './approval_page.js';
import { emptyState, h, replaceChildren } from './dom.js';
import { clientOf } from './headline.js';
import { bindKeys, moveInList } from './keys.js';
import { questionPage } from './question_page.js';
import { callTitle, riskBadge, twoPanes, updateRows } from './rows.js';
import { state, subscribe } from './store.js';
import { firstLine, visibleNodes } from './visible_text.js';

export function showInbox(main) {
  const { element, list, detail } = twoPanes({ title: 'Inbox', label: 'Open requests, the oldest first', backTo: '#/inbox', tools: h('p', { class: 'view-note' }, 'Calls and tools that wait for you') });
  main.append(element);
  let selected;
  let page;
  let isClosed = false;

  const open = () => [...state.approvals.map((it) => ({ ...it, kind: 'approvals' })), ...state.questions.map((it) => ({ ...it, kind: 'questions' }))].sort((a, b) => a.seenAt - b.seenAt);

  function renderList() {
    const requests = open();
    if (!requests.length) replaceChildren(list, emptyState('Nothing waits', 'Approval requests and questions appear here.'));
    updateRows(list, requests, (it) => it.id, makeRow, fillRow);
  }

  const makeRow = (it) => h('a', { class: 'row', href: `#/inbox/${encodeURIComponent(it.id)}`, data: { [it.kind === 'approvals' ? 'approval' : 'question']: it.id } });
  const fillRow = (row, it) => {
    row.dataset.status = state.answered.get(it.id) ?? 'open';
    if (it.id === selected) row.setAttribute('aria-current', 'true');
    else row.removeAttribute('aria-current');
    if (row.childElementCount) return;
    replaceChildren(row, h('span', { class: 'row-main' },
      h('span', { class: 'row-title' }, it.kind === 'approvals' ? callTitle(it) : [h('span', { class: 'call-name' }, 'Question'), visibleNodes(firstLine(it.message))]),
      h('span', { class: 'row-note' }, it.kind === 'approvals' ? riskBadge(it.risk, it.dangerous) : h('span', { class: 'badge' }, it.mode === 'url' ? 'Address to open' : 'Form'), [it.agent, whoOf(it)].filter(Boolean).map((who) => h('span', {}, visibleNodes(who))))));
  };

  // Whose call or question it is, unless it is of this page.
  const whoOf = (it) => {
    const call = state.calls.get(it.call) ?? it;
    return it.session === state.session ? undefined : call.user ?? clientOf(call, state.session);
  };

  // Shows the selected request, or the oldest one. A request that another channel settled says so
  // until the user goes on.
  function showDetail() {
    const requests = open();
    const request = requests.find((it) => it.id === selected) ?? (selected === undefined ? requests[0] : undefined);
    if (page && page.id === (request?.id ?? selected)) return page.update(request);
    if (!request && page && !page.isAnswered && selected !== undefined) return page.update(undefined);
    page?.close();
    page = undefined;
    if (!request) {
      const next = requests.length ? `${requests.length} more ${requests.length === 1 ? 'waits' : 'wait'} in the list.` : 'New requests appear here by themselves.';
      return replaceChildren(detail, emptyState(selected ? 'This request is settled' : 'All clear', next));
    }
    page = request.kind === 'approvals' ? approvalPage(request, goOn) : questionPage(request, goOn);
    replaceChildren(detail, page.element);
    detail.parentElement.scrollTop = 0;
  }

  // After an answer the next request is shown, and focus goes to its row.
  function goOn() {
    // The user may have gone elsewhere while the answer was on its way. The address changes first,
    // the view with the event that follows.
    if (isClosed || (location.hash && !/^#\/inbox(\/|$)/.test(location.hash))) return;
    const isNarrow = matchMedia('(max-width: 860px)').matches;
    page?.close();
    page = undefined;
    selected = undefined;
    if (location.hash !== '#/inbox') location.hash = '#/inbox';
    renderList();
    showDetail();
    const next = list.querySelector('a.row');
    if (next) next.focus();
    else if (!isNarrow) main.focus();
  }

  function select(id) {
    selected = id;
    renderList();
    showDetail();
    markShown();
  }

  function markShown() {
    for (const row of list.querySelectorAll('a.row')) {
      if (page && row.dataset.key === page.id) row.setAttribute('aria-current', 'true');
    }
  }

  const unbind = bindKeys({ j: () => moveInList(list, 1), k: () => moveInList(list, -1), A: () => page?.keys?.once?.(), S: () => page?.keys?.session?.(), E: () => page?.keys?.edit?.(), R: () => page?.keys?.reject?.() });
  const unsubscribe = subscribe((parts) => {
    if (!parts.has('approvals') && !parts.has('questions')) return;
    renderList();
    showDetail();
    markShown();
  });
  return { select, close: () => { isClosed = true; unsubscribe(); unbind(); page?.close(); } };
}
