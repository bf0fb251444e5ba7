// Follows the events of the server: connects, reads, and connects again after every interruption.

import { request } from './api.js';

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8000;

// Calls `onOpen` after each connection, `onEvent` for each event and `onStatus` for each change of
// `live`, `waiting` and `signed-out`. `startAfter` returns the id of the event to go on from.
export async function followEvents({ startAfter, onOpen, onEvent, onStatus }) {
  let delay = FIRST_DELAY_MS;
  for (;;) {
    try {
      const headers = { Accept: 'text/event-stream', 'Last-Event-ID': startAfter() };
      const response = await request('/v1/events', { headers });
      onStatus('live');
      delay = FIRST_DELAY_MS;
      onOpen();
      await readEvents(response.body, onEvent);
    } catch (error) {
      if (error.status === 401 || error.status === 403) return onStatus('signed-out');
    }
    onStatus('waiting');
    await pause(delay);
    delay = Math.min(delay * 2, MAX_DELAY_MS);
  }
}

// Waits, or until the browser is online or the page is looked at again.
function pause(ms) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener('online', done);
      document.removeEventListener('visibilitychange', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener('online', done);
    document.addEventListener('visibilitychange', done);
  });
}

async function readEvents(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf('\n\n')) >= 0) {
      const event = parseEvent(text.slice(0, end));
      text = text.slice(end + 2);
      if (event) onEvent(event);
    }
  }
}

function parseEvent(block) {
  const event = { data: '' };
  for (const line of block.split('\n')) {
    const [, name, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
    if (name === 'data') event.data += value;
    else if (name) event[name] = value;
  }
  return event.data ? { id: event.id, data: JSON.parse(event.data) } : undefined;
}
