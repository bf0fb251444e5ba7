// The frame around the views: navigation, connection, shortcuts, announcements.

import { request } from './api.js';
import { h, icon, replaceChildren } from './dom.js';
import { headlineOf } from './headline.js';
import { helpDialog, listenForKeys } from './keys.js';
import { announceNew, askForNotifications, canAskForNotifications } from './notify.js';
import { state, subscribe } from './store.js';
import { showAudit } from './view_audit.js';
import { showCalls } from './view_calls.js';
import { showInbox } from './view_inbox.js';
import { showPermissions } from './view_permissions.js';
import { showServers } from './view_servers.js';
import { showTools } from './view_tools.js';
import { visible } from './visible_text.js';

const VIEWS = {
  inbox: { title: 'Inbox', show: showInbox, key: 'i' },
  tools: { title: 'Tools', show: showTools, key: 't' },
  calls: { title: 'Calls', show: showCalls, key: 'c' },
  permissions: { title: 'Permissions', show: showPermissions, key: 'p' },
  servers: { title: 'Servers', show: showServers, key: 's' },
  audit: { title: 'Audit log', show: showAudit, key: 'a' },
};
const CONNECTIONS = { connecting: 'Connecting', live: 'Live', waiting: 'Reconnecting', 'signed-out': 'Signed out' };
const THEMES = ['auto', 'light', 'dark'];

export function showShell(app) {
  const main = h('main', { id: 'main', tabindex: -1 });
  const links = Object.entries(VIEWS).map(([name, view]) => navLink(name, view.title));
  const connection = h('span', { class: 'connection', data: { part: 'connection' }, role: 'status' });
  const help = helpDialog(VIEWS);
  const themeButton = iconButton('theme', 'Theme', () => switchTheme(themeButton));
  const bellButton = iconButton('bell', 'Notify me of approvals', async () => {
    await askForNotifications();
    bellButton.hidden = !canAskForNotifications();
  });
  bellButton.hidden = !canAskForNotifications();
  const buttons = h('div', { class: 'foot-buttons', id: 'foot-buttons' },
    h('span', { class: 'foot-note' }), bellButton, themeButton, iconButton('keyboard', 'Keyboard shortcuts', () => help.showModal()), iconButton('leave', 'Sign out', signOut));
  // On narrow screens the buttons are behind one.
  const more = iconButton('more', 'More', () => showButtons(buttons.dataset.open !== 'true'));
  more.classList.add('more-button');
  more.setAttribute('aria-controls', buttons.id);
  const showButtons = (isOpen) => {
    buttons.dataset.open = String(isOpen);
    more.setAttribute('aria-expanded', String(isOpen));
  };
  showButtons(false);
  addEventListener('click', (event) => { if (!more.contains(event.target) && !buttons.contains(event.target)) showButtons(false); });
  addEventListener('keydown', (event) => { if (event.key === 'Escape') showButtons(false); });
  const aside = h('header', { class: 'sidebar' },
    h('div', { class: 'brand' }, h('img', { src: '/console/icon.svg', alt: '', width: 28, height: 28 }),
      h('div', {}, h('div', { class: 'brand-name' }, state.title), h('div', { class: 'brand-version' }, state.user ? [visible(state.user), ` · Console ${state.version}`] : `Console ${state.version}`))),
    h('nav', { 'aria-label': 'Views' }, h('ul', {}, links.map((it) => h('li', {}, it)))),
    h('div', { class: 'sidebar-foot' }, connection, buttons, more));
  const banner = h('div', { class: 'banner', role: 'alert', hidden: true }, h('span', {}, 'This browser is signed out, or the server was started again. Open a new link to go on.'), h('button', { type: 'button', class: 'button small', onclick: () => location.reload() }, 'How to sign in'));
  replaceChildren(app, h('a', { class: 'skip', href: '#main', onclick: (event) => { event.preventDefault(); main.focus(); } }, 'Skip to the content'), aside, main, help, banner);
  setTheme(sessionStorage.getItem('console-theme') ?? 'auto', themeButton);

  let close;
  let shown;
  const route = () => {
    const [, name = '', ...rest] = location.hash.replace(/^#/, '').split('/');
    const view = VIEWS[name] ? name : 'inbox';
    const id = rest.length ? decodeURIComponent(rest.join('/')) : undefined;
    const isNew = shown !== view;
    for (const link of links) {
      if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    if (isNew) {
      close?.close?.();
      main.textContent = '';
      main.dataset.view = view;
      close = VIEWS[view].show(main);
    }
    shown = view;
    main.dataset.detail = id === undefined ? 'none' : 'shown';
    close?.select?.(id);
    if (isNew) main.scrollTop = 0;
  };
  const update = () => {
    connection.dataset.status = state.connection;
    replaceChildren(connection, h('span', { class: 'dot' }), CONNECTIONS[state.connection]);
    buttons.firstChild.textContent = CONNECTIONS[state.connection];
    banner.hidden = state.connection !== 'signed-out';
    const count = state.approvals.length + state.questions.length;
    const badge = links[0].querySelector('.count');
    badge.textContent = count || '';
    badge.hidden = !count;
    document.title = `${count ? `(${count}) ` : ''}${VIEWS[shown]?.title ?? 'Console'} · ${state.title}`;
  };
  addEventListener('hashchange', () => { route(); update(); });
  subscribe((parts) => {
    update();
    announceNew(parts, (it) => { const { name, detail } = headlineOf(it); return `${name} ${detail}`; });
  });
  listenForKeys({ views: VIEWS, help });
  route();
  update();
}

function navLink(name, title) {
  return h('a', { href: `#/${name}`, data: { view: name } }, icon(name), h('span', {}, title), name === 'inbox' && h('span', { class: 'count', hidden: true, title: 'Open requests' }));
}

function iconButton(name, label, onclick) {
  return h('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick }, icon(name));
}

function setTheme(theme, themeButton) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeButton.title = `Theme: ${theme}`;
  themeButton.setAttribute('aria-label', `Theme: ${theme}`);
  themeButton.dataset.theme = theme;
}

function switchTheme(themeButton) {
  const next = THEMES[(THEMES.indexOf(themeButton.dataset.theme) + 1) % THEMES.length];
  sessionStorage.setItem('console-theme', next);
  setTheme(next, themeButton);
}

async function signOut() {
  await request('/console/sign-out', { method: 'POST' }).catch(() => {});
  sessionStorage.clear();
  location.assign('/');
}
