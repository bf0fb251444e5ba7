// The configured MCP servers: connection, tools, pins, and what changed in a foreign tool. Below them the
// remote workers, with their load and failures.

import { getJson, postJson } from './api.js';
import { button, emptyState, h, replaceChildren } from './dom.js';
import { diffView } from './diff.js';
import { showError } from './rows.js';
import { visibleNodes } from './visible_text.js';

export function showServers(main) {
  const content = h('div', { class: 'page-content', data: { status: 'loading' } });
  main.append(h('div', { class: 'page' }, h('div', { class: 'view-head' }, h('h1', {}, 'Servers'), button('Read again', load, { kind: 'small', iconName: 'repeat' })), content));

  async function load() {
    try {
      const [{ servers }, { workers }] = await Promise.all([getJson('/v1/servers'), getJson('/v1/workers')]);
      content.dataset.status = 'ready';
      replaceChildren(content, servers.length ? servers.map(card) : emptyState('No servers', 'MCP servers of the configuration are listed here, with the tools that they add.'), workers.length > 0 && [h('h2', {}, 'Remote workers'), workers.map(workerCard)]);
    } catch (error) {
      content.dataset.status = 'failed';
      showError(content, error);
    }
  }

  function card(server) {
    const message = h('div', { role: 'alert' });
    const act = async (path, body) => {
      try {
        await postJson(`/v1/servers/${encodeURIComponent(server.name)}/${path}`, body);
        await load();
      } catch (error) {
        showError(message, error);
      }
    };
    const status = !server.enabled ? ['off', 'Disabled', ''] : server.connected ? ['live', 'Connected', 'good'] : ['failed', 'Not connected', 'bad'];
    const reach = server.reach ?? {};
    const changed = server.definitions.filter((it) => it.difference !== undefined);
    return h('section', { class: 'card server', data: { server: server.name, status: status[0] } },
      h('div', { class: 'card-head' }, h('div', {}, h('h2', { class: 'card-title' }, visibleNodes(server.name)), h('p', { class: 'mono muted' }, visibleNodes(reach.url ?? [reach.command, ...(reach.args ?? [])].filter(Boolean).join(' ')))),
        h('span', { class: `badge ${status[2]}` }, status[1])),
      message,
      server.last_error && h('p', { class: 'alert' }, visibleNodes(server.last_error)),
      server.warnings.length > 0 && h('div', { class: 'alert warning' }, h('p', { class: 'strong' }, 'Look at these before you trust the server'), h('ul', {}, server.warnings.map((it) => h('li', {}, visibleNodes(it))))),
      h('details', { class: 'more' }, h('summary', {}, `${server.tools.length} tools`), h('ul', { class: 'chips' }, server.tools.map((it) => h('li', {}, h('a', { class: 'mono', href: `#/tools/${encodeURIComponent(it)}` }, visibleNodes(it)))))),
      changed.length > 0 && h('details', { class: 'more', open: true }, h('summary', {}, `${changed.length} not pinned as they are now`),
        changed.map((it) => h('div', { class: 'definition' }, diffView(it.difference, { path: it.tool }))),
        h('div', { class: 'button-row' }, button('Pin all as they are', () => act('pins', { definitions: server.definitions.map(({ tool, text }) => ({ tool, text })) }), { kind: 'small' }), h('span', { class: 'muted' }, 'A later change needs a new review.'))),
      server.definitions.length > 0 && h('details', { class: 'more' }, h('summary', {}, 'All definitions as the server tells them now'),
        server.definitions.map((it) => h('div', { class: 'definition' }, h('h3', { class: 'mono' }, visibleNodes(it.tool)), h('pre', { class: 'text', tabindex: 0 }, visibleNodes(it.text))))),
      server.stderr && h('details', { class: 'more' }, h('summary', {}, 'What it wrote to standard error'), h('pre', { class: 'text', tabindex: 0 }, visibleNodes(server.stderr))),
      !server.connected && server.enabled && h('div', { class: 'button-row' }, button('Connect', () => act('connection', {}), { kind: 'small' })));
  }

  function workerCard(worker) {
    const isBusy = worker.running >= worker.limit;
    const facts = [`${worker.calls} calls, ${worker.average_ms} ms each`, `${worker.failed} failed`, `refused: ${worker.busy} busy, ${worker.refused} other`];
    return h('section', { class: 'card worker', data: { worker: worker.id, status: isBusy ? 'busy' : 'live' } },
      h('div', { class: 'card-head' }, h('div', {}, h('h3', { class: 'card-title' }, visibleNodes(worker.namespace)), h('p', { class: 'mono muted' }, visibleNodes(`${worker.program} ${worker.id}`))),
        h('span', { class: `badge ${isBusy ? 'bad' : 'good'}` }, `${worker.running} of ${worker.limit} running`)),
      h('p', {}, visibleNodes(facts.join('; '))));
  }

  load();
  return { close() {} };
}
