// The mode, the grants, which can be revoked, and the rules in the order of their evaluation.

import { getJson, remove } from './api.js';
import { button, emptyState, h, replaceChildren } from './dom.js';
import { showError } from './rows.js';
import { visibleNodes } from './visible_text.js';

const MODES = {
  auto: 'Reading runs; everything else needs an approval.',
  strict: 'Everything needs an approval.',
  plan: 'Only reading is allowed.',
  explore: 'Only reading is allowed.',
  bypass: 'Nothing needs an approval. Denials still hold.',
};

export function showPermissions(main) {
  const content = h('div', { class: 'page-content', data: { status: 'loading' } });
  main.append(h('div', { class: 'page' }, h('div', { class: 'view-head' }, h('h1', {}, 'Permissions'), button('Read again', load, { kind: 'small', iconName: 'repeat' })), content));
  const message = h('div', { role: 'status' });

  async function load() {
    try {
      const [policy, { grants }] = await Promise.all([getJson('/v1/rules'), getJson('/v1/grants')]);
      replaceChildren(content, message, modeCard(policy.mode), grantTable(grants), ruleTable(policy.rules));
      content.dataset.status = 'ready';
    } catch (error) {
      content.dataset.status = 'failed';
      showError(content, error);
    }
  }

  async function revoke(grant) {
    try {
      await remove(`/v1/grants/${encodeURIComponent(grant.id)}`);
      await load();
      replaceChildren(message, h('p', { class: 'note' }, `Revoked: ${grant.tool} is asked about again.`));
      content.querySelector('h2')?.focus();
    } catch (error) {
      showError(message, error);
    }
  }

  function grantTable(grants) {
    const head = h('h2', { class: 'section-title', tabindex: -1 }, 'Grants', h('span', { class: 'group-count' }, grants.length));
    if (!grants.length) return h('section', {}, head, emptyState('Nothing is granted', 'What you allow for a session or for always is listed here.'));
    const row = (grant) => h('tr', { data: { grant: grant.id } },
      h('td', { class: 'mono' }, visibleNodes(grant.tool)),
      h('td', { class: 'mono strong' }, grant.patterns.map((it) => h('div', {}, visibleNodes(it)))),
      h('td', {}, grant.scope === 'session' ? 'Until the session ends' : ['Always, in ', h('span', { class: 'mono' }, visibleNodes(grant.workspace ?? ''))]),
      h('td', {}, grant.created ? new Date(grant.created * 1000).toLocaleString() : ''),
      h('td', { class: 'cell-action' }, button('Revoke', () => revoke(grant), { kind: 'small danger', 'aria-label': `Revoke ${grant.patterns.join(', ')} of ${grant.tool}` })));
    return h('section', {}, head, tableOf('Grants', ['Tool', 'Pattern', 'Holds', 'Granted', ''], grants.map(row)));
  }

  load();
  return { close() {} };
}

function modeCard(mode) {
  return h('section', { class: 'card mode-card' }, h('div', {}, h('h2', { class: 'card-title' }, 'Mode'), h('p', { class: 'muted' }, MODES[mode] ?? '')), h('span', { class: `badge big ${mode === 'bypass' ? 'bad' : ''}`, data: { mode } }, mode));
}

function ruleTable(rules) {
  const head = h('h2', { class: 'section-title' }, 'Rules', h('span', { class: 'group-count' }, rules.length));
  if (!rules.length) return h('section', {}, head, emptyState('No rules', 'The mode decides about every call.'));
  const row = (rule) => h('tr', {},
    h('td', {}, h('span', { class: `badge ${{ allow: 'good', ask: 'warn', deny: 'bad' }[rule.action]}` }, rule.action)),
    h('td', { class: 'mono strong' }, visibleNodes(`${rule.permission}${rule.pattern === '*' && !rule.argument ? '' : `(${rule.argument ? `${rule.argument}: ` : ''}${rule.pattern})`}`)),
    h('td', {}, rule.scope, rule.agent && ` · ${rule.agent}`, rule.locked && h('span', { class: 'badge' }, 'locked')),
    h('td', { class: 'mono muted' }, visibleNodes(rule.origin ?? '')));
  return h('section', {}, head, h('p', { class: 'muted' }, 'Of those that match, the last one decides; locked ones come first.'), tableOf('Rules', ['Action', 'Rule', 'Scope', 'From'], rules.map(row)));
}

export function tableOf(caption, columns, rows) {
  return h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', { class: 'table' }, h('caption', { class: 'hidden-label' }, caption),
      h('thead', {}, h('tr', {}, columns.map((it) => (it ? h('th', { scope: 'col' }, it) : h('td', {}))))), h('tbody', {}, rows)));
}
