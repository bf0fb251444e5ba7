// Tells the user of new requests: screen readers at once, others by a notification of the system.

import { h } from './dom.js';
import { state } from './store.js';
import { visible } from './visible_text.js';

const known = new Set();
let isFirst = true;
const region = h('div', { class: 'hidden-label', role: 'status', 'aria-live': 'polite', data: { part: 'announcements' } });
document.body.append(region);

export const canAskForNotifications = () => 'Notification' in window && Notification.permission === 'default';

export const askForNotifications = () => Notification.requestPermission();

// Announces requests that were not there before.
export function announceNew(parts, nameOf) {
  if (!parts.has('approvals') && !parts.has('questions')) return;
  const open = [...state.approvals, ...state.questions];
  const fresh = open.filter((it) => !known.has(it.id));
  open.forEach((it) => known.add(it.id));
  const wasFirst = isFirst;
  isFirst = false;
  if (!fresh.length || wasFirst) return;
  const text = fresh.length === 1 ? describe(fresh[0], nameOf) : `${fresh.length} new requests`;
  region.textContent = text;
  if ('Notification' in window && Notification.permission === 'granted' && document.hidden) {
    const note = new Notification(state.title, { body: text, tag: 'console-requests' });
    note.onclick = () => { window.focus(); location.hash = '#/inbox'; };
  }
}

const describe = (it, nameOf) => visible(it.tool ? `Approval needed: ${nameOf(it)}` : `Question: ${it.message}`).slice(0, 200);
