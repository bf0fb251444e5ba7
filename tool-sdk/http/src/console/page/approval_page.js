// One approval request: all of what runs when it is approved, and the answers.

import { argumentsEditor } from './arguments_editor.js';
import { argumentList } from './call_panel.js';
import { diffView } from './diff.js';
import { button, h, replaceChildren, uniqueId } from './dom.js';
import { clientOf, originOf, personOf } from './headline.js';
import { jsonTree } from './json_tree.js';
import { callTitle, facts, riskBadge, showError } from './rows.js';
import { answer, state } from './store.js';
import { hasHiddenWithin, visibleNodes } from './visible_text.js';

// What was pressed before the request could be read does not count.
const GUARD_MS = 400;

export function approvalPage(request, onAnswered) {
  const shownAt = performance.now();
  const message = h('div', { role: 'alert' });
  const scopes = h('div', { class: 'scopes' });
  const element = h('article', { class: 'approval', data: { approval: request.id, status: 'open' } });
  // Parts of the call that are cut until the user opens them.
  const cut = new Set();
  let editor;
  let isAnswered = false;

  async function send(body) {
    if (performance.now() - shownAt < GUARD_MS || isAnswered) return;
    message.textContent = '';
    isAnswered = true;
    setStatus('answering');
    try {
      await answer('approvals', request.id, { ...body, fingerprint: request.fingerprint });
      setStatus('answered');
      onAnswered();
    } catch (error) {
      isAnswered = false;
      setStatus('open');
      if (error.problem?.faults?.length) editor?.showFaults(error.problem.faults);
      showError(message, error);
    }
  }

  function setStatus(status) {
    element.dataset.status = status;
    for (const it of element.querySelectorAll('.answers button')) it.disabled = status !== 'open';
  }

  const approve = button('Approve once', approveOnce, { kind: 'primary', iconName: 'check', data: { action: 'once' }, 'aria-keyshortcuts': 'Shift+A' });
  const feedback = h('textarea', { class: 'input', rows: 1, id: uniqueId('feedback'), placeholder: `Say why, or what to do instead${matchMedia('(pointer: fine)').matches ? '; Ctrl+Enter rejects' : ''}`, data: { field: 'feedback' }, onkeydown: (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.repeat) reject.click();
  } });
  const reject = button('Reject', () => send({ reply: 'reject', ...(feedback.value.trim() && { feedback: feedback.value.trim() }) }), { kind: 'danger', iconName: 'cross', data: { action: 'reject' }, 'aria-keyshortcuts': 'Shift+R' });
  const patterns = request.suggestions.length ? patternFields(request) : undefined;
  const grant = (reply) => {
    const list = patterns.read();
    if (cut.size) return showError(message, new Error('look at all of the call before you allow more than this call: open what is hidden in it'));
    if (!list.length) return showError(message, new Error('choose or write at least one pattern'));
    return send({ reply, patterns: list });
  };

  function approveOnce() {
    if (!editor) return send({ reply: 'once' });
    if (editor.isJson()) return send({ reply: 'once', arguments: editor.read() });
    editor.check();
    return editor.focusFaults();
  }

  function toggleEdit() {
    if (editor) {
      editor = undefined;
      replaceChildren(editPlace, argumentList(request.arguments, cut));
      editButton.querySelector('span').textContent = 'Edit the arguments';
      approve.querySelector('span').textContent = 'Approve once';
      scopes.hidden = false;
      return;
    }
    const schema = state.tools.find((it) => it.name === request.tool)?.parameters ?? {};
    editor = argumentsEditor(schema, { value: request.arguments });
    replaceChildren(editPlace, h('p', { class: 'note' }, 'What is shown above is the call before your edit. The edited call is checked and judged again.'), editor.element);
    editButton.querySelector('span').textContent = 'Discard the edit';
    approve.querySelector('span').textContent = 'Approve the edited call';
    scopes.hidden = true;
    editor.element.querySelector('textarea, input, select')?.focus();
  }

  const editPlace = h('div', {}, argumentList(request.arguments, cut));
  const editButton = button('Edit the arguments', toggleEdit, { kind: 'small', data: { action: 'edit' }, 'aria-keyshortcuts': 'Shift+E' });
  const gone = h('div', { class: 'note', role: 'status', hidden: true });

  const isForSession = hasFurtherCalls(request);
  const further = patterns && h('details', { class: 'more' }, h('summary', {}, 'Allow further calls like this'), patterns.element,
    h('div', { class: 'button-row' },
      isForSession && button('For this session', () => grant('session'), { data: { action: 'session' }, 'aria-keyshortcuts': 'Shift+S' }),
      button('Always, in this folder', () => grant('always'), { data: { action: 'always' } })),
    !isForSession && h('p', { class: 'field-note' }, 'The client named no session: that of this call ends with its request.'));
  replaceChildren(scopes, further);

  // The first press shows the patterns, the second one grants them.
  function grantByKey() {
    if (!further || editor) return undefined;
    if (further.open && isForSession) return grant('session');
    further.open = true;
    return patterns.element.focus();
  }

  replaceChildren(element,
    h('div', { class: 'detail-head' },
      h('div', {}, h('p', { class: 'eyebrow' }, 'Approval needed'), h('h2', { class: 'detail-title' }, callTitle(request))),
      h('div', { class: 'badges' }, riskBadge(request.risk, request.dangerous))),
    gone,
    hasHiddenWithin([request.arguments, request.preview, request.subjects]) && h('p', { class: 'alert warning' }, 'The call has invisible or control characters. They are shown as escapes.'),
    h('p', { class: 'reason' }, visibleNodes(request.reason)),
    previewOf(request, cut),
    h('div', { class: 'section-head' }, h('h3', { class: 'section-title' }, 'Arguments'), editButton),
    editPlace,
    request.original !== undefined && h('details', { class: 'more' }, h('summary', {}, 'A hook changed them; as the model sent them'), argumentList(request.original)),
    h('details', { class: 'more' }, h('summary', {}, 'Who asks, and why'),
      facts([['Tool', h('span', { class: 'mono' }, visibleNodes(request.tool))], ['From', originOf(request) || 'this program'], ['For', personOf(state.calls.get(request.call) ?? request)], ['Client', clientOf(state.calls.get(request.call) ?? request, state.session)], ['Agent', request.agent], ['Session', request.session], ['Permission', request.permission], ['Decided by', typeof request.by === 'string' ? request.by : JSON.stringify(request.by)], ['Rules', request.rules.map((it) => `${it.action} ${it.permission}${it.pattern ? `(${it.pattern})` : ''}`).join(', ')], ['Fingerprint', h('span', { class: 'mono' }, request.fingerprint.slice(0, 16))]])),
    h('div', { class: 'answers' }, message, scopes,
      h('div', { class: 'answer-bar' },
        approve,
        h('div', { class: 'reject-box' }, h('label', { class: 'hidden-label', for: feedback.id }, 'Reason for the rejection, for the model'), feedback, reject))));

  return {
    id: request.id,
    element,
    get isAnswered() { return isAnswered; },
    update(now) {
      const isGone = now === undefined && !isAnswered;
      if (!isGone || element.dataset.status === 'gone') return;
      setStatus('gone');
      gone.hidden = false;
      gone.textContent = 'This request was settled elsewhere, or its call has ended.';
    },
    close() {},
    keys: {
      once: () => approve.click(),
      session: grantByKey,
      edit: () => editButton.click(),
      reject: () => (document.activeElement === feedback ? reject.click() : feedback.focus()),
    },
  };
}

// Whether the session of the call can have further calls. That of a request without a session ends with
// it, and has several calls only where the request is a batch.
function hasFurtherCalls(request) {
  if (!request.session.startsWith('once-')) return true;
  return [...state.calls.values()].some((it) => it.session === request.session && it.id !== request.call);
}

// Returns the preview: a diff, a command, or the facts that the tool tells. Adds to `cut` what is not
// shown yet.
function previewOf(request, cut) {
  const { unified, path, added, removed, ...rest } = request.preview && typeof request.preview === 'object' && !Array.isArray(request.preview) ? request.preview : {};
  const parts = [];
  if (typeof unified === 'string') {
    cut.add('diff');
    parts.push(diffView(unified, { path, onWhole: () => cut.delete('diff') }));
  }
  if (request.risk?.class === 'execute' && typeof request.arguments?.[request.display?.primary] === 'string') {
    parts.push(h('pre', { class: 'command-block', 'aria-label': 'Command' }, visibleNodes(request.arguments[request.display.primary])));
  }
  if (typeof request.preview === 'string') parts.push(h('pre', { class: 'text' }, visibleNodes(request.preview)));
  const entries = Object.entries(rest);
  if (entries.length) {
    parts.push(facts(entries.map(([name, value]) => [name.replaceAll('_', ' '), Array.isArray(value) && value.every((it) => typeof it === 'string') ? value.map((it) => h('div', { class: 'mono' }, visibleNodes(it))) : typeof value === 'string' ? value : jsonTree(value, { cut })])));
  }
  const subjects = (request.subjects ?? []).map((it) => (typeof it === 'string' ? it : it.text ?? it.value ?? JSON.stringify(it)));
  if (subjects.length > 1) parts.push(h('div', { class: 'subjects' }, h('h3', { class: 'section-title' }, `Acts on ${subjects.length} things`), h('ul', { class: 'mono' }, subjects.map((it) => h('li', {}, visibleNodes(it))))));
  return h('div', { class: 'preview' }, parts);
}

// The patterns that an answer grants: suggested ones to choose and to edit, and further ones.
function patternFields(request) {
  const rows = request.suggestions.map((pattern, index) => {
    const input = h('input', { class: 'input mono', value: pattern, 'aria-label': `Pattern ${index + 1}`, oninput: () => { check.checked = input.value.trim() !== ''; describe(); } });
    const check = h('input', { type: 'checkbox', checked: index === 0, 'aria-label': `Grant pattern ${index + 1}`, onchange: () => describe() });
    return { input, check };
  });
  const note = h('p', { class: 'field-note', role: 'status' });
  const read = () => rows.filter((it) => it.check.checked).map((it) => it.input.value.trim()).filter(Boolean);
  const describe = () => {
    const chosen = read();
    const covered = earlierSubjects(request).filter((subject) => chosen.some((pattern) => isMatch(pattern, subject)));
    replaceChildren(note, chosen.length ? `Calls of ${request.tool} that act on what matches run without asking. ` : 'Nothing is chosen.',
      covered.length ? `Of the calls so far that would be: ${covered.slice(0, 5).join(', ')}${covered.length > 5 ? ` and ${covered.length - 5} more` : ''}.` : '');
  };
  describe();
  return { element: h('div', { class: 'patterns', tabindex: -1, role: 'group', 'aria-label': 'Patterns to allow' }, rows.map((it) => h('div', { class: 'pattern' }, it.check, it.input)), note), read };
}

// What earlier calls of the tool acted on, as far as their primary argument says so.
function earlierSubjects(request) {
  const values = [...state.calls.values()].filter((it) => it.tool === request.tool).map((it) => it.arguments?.[it.display?.primary]);
  return [...new Set(values.filter((it) => typeof it === 'string'))];
}

// Like the server for the wildcards that people use; the server decides.
function isMatch(pattern, text) {
  const source = pattern.split('*').map((it) => it.replace(/[.+^${}()|[\]\\?]/g, (char) => (char === '?' ? '.' : `\\${char}`))).join('.*');
  return new RegExp(`^${source}$`, 's').test(text);
}
