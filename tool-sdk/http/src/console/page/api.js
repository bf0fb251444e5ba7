// Sends requests to the API, with the request token.
//
// The token is in the storage of the tab, and tabs tell it each other. Both are of this origin, so a
// server at another port cannot read it. It is worth nothing without the cookie.

const TOKEN_KEY = 'console-request-token';
const OTHER_TABS_MS = 300;
const tabs = new BroadcastChannel('console-request-token');

tabs.addEventListener('message', ({ data }) => {
  if (data.token) sessionStorage.setItem(TOKEN_KEY, data.token);
  else if (readToken()) tabs.postMessage({ token: readToken() });
});

const readToken = () => sessionStorage.getItem(TOKEN_KEY);

// A failure that the server described, or that kept the request from it.
export class ApiError extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.error ?? 'the request failed');
    this.problem = problem;
  }

  get status() {
    return this.problem.status ?? 0;
  }
}

export function keepRequestToken(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
  tabs.postMessage({ token });
}

// Asks the other tabs for the token, if this one has none.
export async function findRequestToken() {
  if (readToken()) return;
  tabs.postMessage({});
  await new Promise((resolve) => {
    tabs.addEventListener('message', resolve, { once: true });
    setTimeout(resolve, OTHER_TABS_MS);
  });
}

async function send(path, { method = 'GET', body, headers = {}, signal } = {}) {
  const all = { ...headers };
  const token = readToken();
  if (token) all['Console-Request'] = token;
  if (body !== undefined) all['Content-Type'] = 'application/json';
  const text = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
  try {
    return await fetch(path, { method, headers: all, body: text, signal, cache: 'no-store', redirect: 'error' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError({ detail: 'the server cannot be reached', status: 0 });
  }
}

async function problemOf(response) {
  const fallback = { status: response.status, detail: `the server answered ${response.status}` };
  try {
    return { ...fallback, ...(await response.json()) };
  } catch {
    return fallback;
  }
}

// Returns the response of a successful request.
export async function request(path, options) {
  const response = await send(path, options);
  if (!response.ok) throw new ApiError(await problemOf(response));
  return response;
}

// Returns the JSON of a successful request.
export async function getJson(path, options) {
  const response = await request(path, options);
  return response.status === 204 ? undefined : response.json();
}

export const postJson = (path, body, options) => getJson(path, { ...options, method: 'POST', body });

export const remove = (path, options) => request(path, { ...options, method: 'DELETE' });
