// Signs in, and starts the page.

import { ApiError, findRequestToken, getJson, keepRequestToken, postJson } from './api.js';
import { h, replaceChildren } from './dom.js';
import { showShell } from './shell.js';
import { start } from './store.js';

const CODE = /^#[0-9a-f]{64}$/;
const app = document.getElementById('app');

// Exchanges the code of the link for a cookie and a request token, or asks whether the browser is
// still signed in.
async function signIn() {
  const fragment = location.hash;
  if (!CODE.test(fragment)) return readSession();
  // The code leaves the address bar and the history before it is used.
  history.replaceState(null, '', '/#/inbox');
  try {
    const { request_token: token, ...session } = await postJson('/console/sign-in', { code: fragment.slice(1) });
    keepRequestToken(token);
    return session;
  } catch (error) {
    // A link that was opened before is no problem for a browser that is signed in.
    return readSession().catch(() => { throw error; });
  }
}

async function readSession() {
  await findRequestToken();
  return getJson('/console/session');
}

function showProblem(error) {
  const isSignedOut = error instanceof ApiError && error.status === 401;
  app.dataset.status = isSignedOut ? 'signed-out' : 'failed';
  replaceChildren(app, h('main', { class: 'gate' },
    h('img', { src: '/console/icon.svg', alt: '', width: 48, height: 48 }),
    h('h1', {}, isSignedOut ? 'Sign in with the link' : 'The console cannot start'),
    h('p', {}, isSignedOut
      ? 'The server printed a link when it started. It signs in one browser, once, within ten minutes.'
      : error.message),
    isSignedOut && h('p', { class: 'muted' }, error.message),
    isSignedOut && h('p', {}, 'A token for administration makes another link:'),
    isSignedOut && h('pre', { class: 'text' }, `curl -X POST -H "Authorization: Bearer $TOKEN" \\\n  ${location.origin}/v1/console/links`),
    h('button', { type: 'button', class: 'button primary', onclick: () => location.reload() }, 'Try again')));
}

async function run() {
  try {
    const session = await signIn();
    await start(session);
    showShell(app);
    app.dataset.status = 'ready';
  } catch (error) {
    showProblem(error);
  }
}

// A link that is opened in a tab with the page changes the fragment only.
addEventListener('hashchange', () => { if (CODE.test(location.hash)) location.reload(); });
run();
