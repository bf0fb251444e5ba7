// The state of the page: calls, open requests and lists, as the server tells them.
//
// State first, stream second: every connection reads the lists again, and the stream goes on from
// the last event that was seen. The order of calls is that of the server's numbers.

import { ApiError, getJson, postJson, remove } from './api.js';
import { followEvents } from './event_stream.js';

const MAX_CALLS = 1000;
const MAX_OUTPUT = 200_000;
const SESSION_KEY = 'console-session';

export const state = {
  title: 'Console',
  version: '',
  // The person whom the link of this browser was made for.
  user: undefined,
  connection: 'connecting',
  session: '',
  tools: [],
  toolsError: undefined,
  calls: new Map(),
  approvals: [],
  questions: [],
  // Approval requests that the events settled. Their ids do not come again.
  settled: new Set(),
  // Answers that this page gave, by id, for rows that are about to go.
  answered: new Map(),
  lastEventId: undefined,
  // The number of the newest event when the page was loaded: later ones are live.
  loadedSeq: 0,
};

const listeners = new Set();
let isScheduled = false;
const changed = new Set();

// Calls `listener` with the set of changed parts, at most once per frame.
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(part) {
  changed.add(part);
  if (isScheduled) return;
  isScheduled = true;
  // A hidden page draws no frames, but has to notify of approvals.
  setTimeout(() => {
    isScheduled = false;
    const parts = new Set(changed);
    changed.clear();
    for (const listener of [...listeners]) listener(parts);
  }, 16);
}

export async function start({ title, version, user }) {
  Object.assign(state, { title, version, user });
  await Promise.all([openSession(), readTools(), readApprovals()]);
  const seq = seqOf(state.lastEventId);
  state.loadedSeq = seq;
  const run = state.lastEventId.slice(0, state.lastEventId.lastIndexOf('-'));
  await readHistory();
  // The log of the server fills the timeline from its start.
  state.lastEventId = `${run}-0`;
  followEvents({
    startAfter: () => state.lastEventId,
    onOpen: readAgain,
    onEvent: applyEvent,
    onStatus: setConnection,
  });
}

const seqOf = (id) => Number(id.slice(id.lastIndexOf('-') + 1));

function setConnection(status) {
  state.connection = status;
  notify('connection');
}

// Reads what may have changed while there was no connection.
function readAgain() {
  readUntilDone(readApprovals);
  readUntilDone(readQuestions);
}

// Reads a list, again after a failure. Another connection reads the lists anyway.
async function readUntilDone(read) {
  for (let delay = 250; ; delay = Math.min(delay * 2, 8000)) {
    try {
      return await read();
    } catch (error) {
      if (error.status === 401 || error.status === 403) return undefined;
      await new Promise((resolve) => setTimeout(resolve, delay));
      if (state.connection !== 'live') return undefined;
    }
  }
}

// The session of calls that this page makes. Its id is no secret, and survives a reload.
async function openSession() {
  const known = sessionStorage.getItem(SESSION_KEY);
  if (known) {
    try {
      await getJson(`/v1/sessions/${encodeURIComponent(known)}`);
      state.session = known;
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  await newSession();
}

export async function newSession() {
  const { id } = await postJson('/v1/sessions', { conversation: 'console' });
  sessionStorage.setItem(SESSION_KEY, id);
  state.session = id;
  notify('session');
}

export async function readTools() {
  try {
    const { tools } = await getJson('/v1/tools');
    // One malformed entry must not hide the others.
    state.tools = tools.filter((tool) => typeof tool?.name === 'string');
    state.toolsError = undefined;
  } catch (error) {
    state.toolsError = error;
  }
  notify('tools');
}

async function readApprovals() {
  const { last_event_id: last, approvals } = await getJson('/v1/approvals');
  state.lastEventId ??= last;
  // The stream may be ahead of the list: what it told after the list was made holds.
  const listed = approvals.filter((it) => !state.settled.has(it.id)).map(stamp);
  const later = state.approvals.filter((it) => it.seq > seqOf(last) && !listed.some((other) => other.id === it.id));
  state.approvals = [...listed, ...later];
  notify('approvals');
}

export async function readQuestions() {
  const { questions } = await getJson('/v1/questions');
  state.questions = questions.map(stamp);
  notify('questions');
}

// Keeps when this page saw a request first.
function stamp(request) {
  const known = [...state.approvals, ...state.questions].find((it) => it.id === request.id);
  return { ...request, seenAt: known?.seenAt ?? performance.now() };
}

async function readHistory() {
  const { calls } = await getJson('/v1/calls', { headers: { 'Session-Id': state.session } });
  for (const record of calls) addRecord(record);
}

function addRecord(record) {
  const call = callOf(record.call, record);
  call.at = record.started_at_ms;
  call.arguments ??= record.arguments;
  call.elapsed = record.elapsed_ms ?? call.elapsed;
  call.data ??= record.response?.display;
  // The events know better why a call failed.
  if (record.status !== 'running' && isRunning(call)) call.state = record.status;
}

// Returns the call with this id; adds it for the first event about it.
function callOf(id, { tool, session }) {
  let call = state.calls.get(id);
  if (!call) {
    call = { id, tool, session, state: 'pending', seq: 0, output: '', events: [] };
    state.calls.set(id, call);
    if (state.calls.size > MAX_CALLS) state.calls.delete(state.calls.keys().next().value);
  }
  return call;
}

function applyEvent({ id, data }) {
  if (data.type === 'gap') return readAgain();
  if (data.type === 'questions_changed') return readUntilDone(readQuestions);
  if (id) state.lastEventId = id;
  if (!data.call) return;
  const call = callOf(data.call, data);
  const isLive = data.seq > state.loadedSeq;
  call.at ??= data.at_ms ?? (isLive ? Date.now() : undefined);
  if (!call.seq) call.seq = data.seq;
  if (call.events.length < 500) call.events.push(data);
  for (const key of ['display', 'source', 'agent', 'parent', 'summary', 'user', 'conversation', 'project']) {
    if (data[key] !== undefined) call[key] = data[key];
  }
  APPLY[data.type]?.(call, data, isLive);
  notify('calls');
}

const ended = (status) => (call, data) => {
  call.state = status;
  call.elapsed = data.elapsed_ms;
  call.message = data.message;
  call.error = data.error;
};

// What each kind of event changes.
const APPLY = {
  pending: (call, data) => {
    call.arguments = data.arguments;
    call.notes = data.notes;
  },
  permission_asked: (call, data, isLive) => {
    call.state = 'waiting';
    if (isLive && !state.approvals.some((it) => it.id === data.id)) {
      state.approvals = [...state.approvals, stamp(data)];
      notify('approvals');
    }
  },
  permission_replied: (call, data) => {
    if (call.state === 'waiting') call.state = 'pending';
    call.reply = data.reply;
    state.settled.add(data.ask);
    state.approvals = state.approvals.filter((it) => it.id !== data.ask);
    notify('approvals');
  },
  denied: (call, data) => {
    call.denied = data.reason;
  },
  started: (call, data) => {
    call.state = 'running';
    if (data.arguments) call.arguments = data.arguments;
  },
  progress: (call, data) => {
    call.progress = data;
  },
  output: (call, data) => {
    call.output = (call.output + data.text).slice(-MAX_OUTPUT);
  },
  completed: (call, data) => {
    ended('completed')(call, data);
    call.title = data.title;
    call.data = data.data;
    call.artifacts = data.artifacts;
  },
  failed: (call, data) => ended(call.denied ? 'denied' : 'failed')(call, data),
  aborted: ended('aborted'),
  timed_out: ended('timed_out'),
};

export const isRunning = (call) => ['pending', 'waiting', 'running'].includes(call.state);

// Starts a call in the page's session; returns its id at once. `text` is what is sent.
export async function startCall(tool, text) {
  const headers = { 'Session-Id': state.session, Prefer: 'respond-async' };
  const accepted = await postJson(`/v1/tools/${encodeURIComponent(tool)}`, text, { headers });
  callOf(accepted.call, { tool, session: state.session }).at ??= Date.now();
  notify('calls');
  return accepted.call;
}

export async function cancelCall(call) {
  const headers = sessionHeader(call);
  await remove(`/v1/calls/${encodeURIComponent(call.id)}`, { headers });
}

// Returns the result or the problem of a call that has ended, or `{ reason }` why there is none to show.
export async function readResult(call) {
  // The server has no records of other surfaces, so it is not asked about them.
  if (!/^(session|once)-/.test(call.session ?? '')) return { reason: 'Its text went to its own client: the server keeps the results of calls over the HTTP API only.' };
  try {
    const response = await readResponse(call);
    return response ? { response } : { reason: 'Its text is larger than what the server keeps.' };
  } catch (error) {
    return { reason: error.status === 404 ? 'The server no longer has its text: it keeps the last calls.' : `Its text cannot be read: ${error.message}.` };
  }
}

async function readResponse(call) {
  const headers = sessionHeader(call);
  for (let attempt = 0; attempt < 40; attempt += 1) {
    const record = await getJson(`/v1/calls/${encodeURIComponent(call.id)}`, { headers });
    addRecord(record);
    if (record.status !== 'running') {
      notify('calls');
      return record.response;
    }
    // The record follows the last event.
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return undefined;
}

const sessionHeader = (call) => (call.session?.startsWith('session-') ? { 'Session-Id': call.session } : {});

// Answers an approval request or a question; it is gone when another channel was first.
export async function answer(kind, id, body) {
  state.answered.set(id, 'answering');
  notify(kind);
  try {
    await postJson(`/v1/${kind}/${encodeURIComponent(id)}`, body);
    drop(kind, id);
  } catch (error) {
    state.answered.delete(id);
    if (error.status === 404 || (error.status === 409 && !/fingerprint/.test(error.message))) drop(kind, id);
    notify(kind);
    throw error;
  }
}

function drop(kind, id) {
  state.answered.delete(id);
  state[kind] = state[kind].filter((it) => it.id !== id);
  notify(kind);
}
