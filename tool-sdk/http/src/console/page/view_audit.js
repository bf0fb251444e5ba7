// The audit log with filters, the newest record first.

import { getJson } from './api.js';
import { button, emptyState, h, replaceChildren } from './dom.js';
import { exitProblem } from './headline.js';
import { jsonTree } from './json_tree.js';
import { showError } from './rows.js';
import { state } from './store.js';
import { visibleNodes } from './visible_text.js';

const KINDS = { '': 'Everything', decided: 'Decisions', ran: 'Runs' };
const DECISIONS = { '': 'Any decision', allow: 'Allowed', ask: 'Asked', deny: 'Denied' };

export function showAudit(main) {
  const content = h('div', { class: 'page-content', data: { status: 'loading' } });
  const what = choice('Kind of record', KINDS, load);
  const decision = choice('Decision', DECISIONS, load);
  const tool = h('input', { type: 'search', class: 'input search', placeholder: 'Tool', 'aria-label': 'Tool', onchange: load });
  const session = h('input', { type: 'search', class: 'input search', placeholder: 'Session or call', 'aria-label': 'Session or call', onchange: load });
  main.append(h('div', { class: 'page' }, h('div', { class: 'view-head' }, h('h1', {}, 'Audit log'), button('Read again', load, { kind: 'small', iconName: 'repeat' })),
    h('form', { class: 'filters', role: 'search', onsubmit: (event) => { event.preventDefault(); load(); } }, what, decision, tool, session), content));

  async function load() {
    const query = new URLSearchParams();
    for (const [name, input] of Object.entries({ what, decision, tool, id: session })) if (input.value.trim()) query.set(name, input.value.trim());
    try {
      const { records, is_complete: isComplete } = await getJson(`/v1/audit?${query}`);
      content.dataset.status = 'ready';
      replaceChildren(content, records.length ? [h('ol', { class: 'audit', 'aria-label': 'Records' }, records.map(recordRow)), !isComplete && h('p', { class: 'muted' }, 'Older records are in the file.')] : emptyState('No records', 'Nothing in the log fits the filters.'));
    } catch (error) {
      content.dataset.status = 'failed';
      if (error.status === 404) replaceChildren(content, emptyState('There is no audit log', 'The setting `audit` names the file in which every decision and every run is recorded.'));
      else showError(content, error);
    }
  }

  load();
  return { close() {} };
}

function choice(label, options, onchange) {
  return h('select', { class: 'input', 'aria-label': label, onchange }, Object.entries(options).map(([value, title]) => h('option', { value }, title)));
}

function recordRow(record) {
  const isRun = record.what === 'ran';
  const word = isRun ? record.outcome : record.decision;
  const kind = { ok: 'good', allow: 'good', deny: 'bad', ask: 'warn' }[word] ?? 'bad';
  const problem = isRun ? exitProblem(state.calls.get(record.call)) : undefined;
  // The reason of an approval names who gave it.
  const who = record.reason?.includes(record.answer?.who) ? undefined : record.answer?.who;
  return h('li', { class: 'audit-row', data: { what: record.what, decision: record.decision } },
    h('details', {}, h('summary', {},
      h('time', { class: 'audit-time', datetime: record.time }, new Date(record.time).toLocaleString([], { hour12: false })),
      h('span', { class: `badge ${kind}` }, isRun ? (word === 'ok' ? 'ran' : word) : word),
      problem && h('span', { class: 'badge bad' }, problem.toLowerCase()),
      h('span', { class: 'mono strong' }, visibleNodes(record.tool)),
      h('span', { class: 'audit-reason' }, visibleNodes(isRun ? `${record.elapsed_ms} ms` : record.reason ?? ''), who && h('span', { class: 'muted' }, visibleNodes(` · by ${who}`)))),
    jsonTree(record, { open: 1 })));
}
