// Sends requests to the API. The request token is only in this module's memory.

let requestToken;

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

export function setRequestToken(token) {
  requestToken = token;
}

async function send(path, { method = 'GET', body, headers = {}, signal } = {}) {
  const all = { ...headers };
  if (requestToken) all['Console-Request'] = requestToken;
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
