// Names calls from the display data of their events alone, without knowing any tool.

import { firstLine } from './visible_text.js';

const MAX_VALUE = 80;

// Returns `{ name, detail, notes }`, such as `Read`, `src/a.rs` and `offset: 10`. The detail is the most
// important argument alone, so that no other text can be taken for a part of it; without one, the
// summary of the call.
export function headlineOf(call) {
  const display = call.display ?? {};
  const name = display.name ?? call.tool ?? 'call';
  const args = call.arguments && typeof call.arguments === 'object' ? call.arguments : {};
  const hasDisplay = display.primary !== undefined || display.show?.length > 0;
  const show = (hasDisplay ? display.show ?? [] : Object.keys(args)).filter((key) => args[key] !== undefined && args[key] !== null);
  const primary = display.primary ?? (hasDisplay ? show.find((key) => typeof args[key] !== 'object') : undefined);
  const isSummary = args[primary] === undefined;
  const detail = isSummary ? call.summary ?? '' : valueOf(display, args, primary);
  return { name, detail, isSummary, notes: show.filter((key) => key !== primary).map((key) => `${key}: ${valueOf(display, args, key)}`) };
}

function valueOf(display, args, key) {
  if (display.sensitive?.includes(key)) return '***';
  return firstLine(shortText(args[key]), MAX_VALUE);
}

// Returns a text as it is, a list of texts and numbers in one line, and how long other lists are.
function shortText(value) {
  if (value === null || typeof value !== 'object') return String(value);
  const items = Object.values(value);
  if (Array.isArray(value) && items.every((it) => it === null || typeof it !== 'object')) return items.join(', ');
  return countText(items.length, 'entry', 'entries');
}

export const countText = (count, one, many) => `${count} ${count === 1 ? one : many}`;

// Returns where a tool comes from, such as `github (MCP)`.
export function originOf({ source } = {}) {
  if (!source || source.type === 'native' || source.type === undefined) return '';
  return source.server ?? source.name ?? source.id ?? source.type;
}

export const STATE_NAMES = {
  pending: 'Starting',
  waiting: 'Needs approval',
  running: 'Running',
  completed: 'Done',
  failed: 'Failed',
  denied: 'Denied',
  aborted: 'Cancelled',
  timed_out: 'Timed out',
};

// Returns how a command failed although its tool returned a result, such as `Exit 2`: its display data
// have an exit code.
export function exitProblem(call) {
  const code = call?.data?.exit_code;
  return Number.isInteger(code) && code !== 0 ? `Exit ${code}` : undefined;
}

export function durationText(ms) {
  if (ms === undefined || ms === null) return '';
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

// Returns the time of today, or the day of another date.
export function timeText(at) {
  const then = new Date(at);
  if (then.toDateString() === new Date().toDateString()) return then.toLocaleTimeString([], { hour12: false });
  return then.toLocaleDateString([], { day: 'numeric', month: 'short' });
}

export function dateText(at) {
  return new Date(at).toLocaleString([], { hour12: false, dateStyle: 'medium', timeStyle: 'medium' });
}

// How sessions of each surface are named.
const SURFACES = { session: 'HTTP API', once: 'HTTP API', mcp: 'MCP' };

// Returns which client made a call, as far as the name of its session says.
export function clientOf(call, ownSession) {
  if (call.session === ownSession) return 'this page';
  if (call.conversation === 'console') return 'another page of the console';
  return SURFACES[String(call.session ?? '').split('-', 1)[0]] ?? '';
}

// Returns whom a call is made for.
export const personOf = (call) => call.user ?? 'the owner of the server';

export const categoryName = (category) => {
  const text = (category ?? 'other').replaceAll('_', ' ');
  return text === 'mcp' ? 'MCP' : text.charAt(0).toUpperCase() + text.slice(1);
};
