// One question of a tool: a form, or an address to open.

import { argumentsEditor } from './arguments_editor.js';
import { button, h, replaceChildren } from './dom.js';
import { showError } from './rows.js';
import { answer } from './store.js';
import { visibleNodes } from './visible_text.js';

export function questionPage(question, onAnswered) {
  const message = h('div', { role: 'alert' });
  const gone = h('div', { class: 'note', role: 'status', hidden: true });
  const schema = question.schema ?? { type: 'object' };
  const { text, notes } = splitChoices(question.message, schema);
  const editor = question.mode === 'form' ? argumentsEditor(schema, { isQuestion: true, notes, onChange: () => { isEmptyMeant = false; message.textContent = ''; } }) : undefined;
  const [title, ...rest] = text.split('\n');
  const element = h('article', { class: 'question', data: { question: question.id, status: 'open' } });
  let isAnswered = false;
  // Whether the user was told that the answer is empty, and changed nothing since.
  let isEmptyMeant = false;

  async function send(body) {
    if (isAnswered) return;
    isAnswered = true;
    message.textContent = '';
    setStatus('answering');
    try {
      await answer('questions', question.id, body);
      setStatus('answered');
      onAnswered();
    } catch (error) {
      isAnswered = false;
      setStatus('open');
      showError(message, error);
    }
  }

  function setStatus(status) {
    element.dataset.status = status;
    for (const it of element.querySelectorAll('.answers button')) it.disabled = status !== 'open';
  }

  const accept = () => {
    if (!editor) return send({ action: 'accept' });
    if (!editor.check()) return editor.focusFaults();
    const content = editor.read();
    if (!isEmptyMeant && Object.keys(schema.properties ?? {}).length && !Object.keys(content).length) {
      isEmptyMeant = true;
      return showError(message, new Error('nothing is chosen or written; press Answer again to send an empty answer'));
    }
    return send({ action: 'accept', content });
  };
  element.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.repeat) accept();
  });
  replaceChildren(element,
    h('div', { class: 'detail-head' }, h('div', {}, h('p', { class: 'eyebrow' }, 'A tool asks'), h('h2', { class: 'detail-title' }, visibleNodes(title)))),
    rest.length > 0 && h('p', { class: 'question-text' }, visibleNodes(rest.join('\n').trim())),
    gone,
    editor?.element,
    question.mode === 'url' && addressOf(question.url),
    h('div', { class: 'answers' }, message, h('div', { class: 'answer-bar' },
      button(editor ? 'Answer' : 'I have opened it', accept, { kind: 'primary', iconName: 'check', data: { action: 'accept' }, title: 'Ctrl+Enter' }),
      button('Decline', () => send({ action: 'decline' }), { data: { action: 'decline' } }),
      button('Close the question', () => send({ action: 'cancel' }), { kind: 'quiet', data: { action: 'cancel' } }))));
  return {
    id: question.id,
    element,
    get isAnswered() { return isAnswered; },
    update(now) {
      if (now !== undefined || isAnswered || element.dataset.status === 'gone') return;
      setStatus('gone');
      gone.hidden = false;
      gone.textContent = 'This question was answered elsewhere, or its call has ended.';
    },
    close() {},
  };
}

// Moves what a message says of each choice of the form beside that choice: its last lines, each
// `- CHOICE`, perhaps with a remark in parentheses, and a text behind a colon. A message without such
// lines stays whole. The notes are `{ remark, text }`, by the value of the choice.
export function splitChoices(message, schema) {
  const whole = { text: message, notes: new Map() };
  const fields = Object.values(schema.properties ?? {}).map((it) => it?.enum ?? it?.items?.enum).filter(Array.isArray);
  const lines = message.split('\n');
  if (fields.length !== 1) return whole;
  const starts = [];
  let from = lines.length - 1;
  // From the end, so that a question that quotes a choice does not count.
  for (const choice of [...fields[0]].reverse()) {
    const rest = (line) => (line.startsWith(`- ${choice}`) ? line.slice(choice.length + 2) : undefined);
    while (from >= 0 && !/^(: .*| \(.*\)(: .*)?)?$/s.test(rest(lines[from]) ?? '?')) from -= 1;
    if (from < 0) return whole;
    starts.unshift({ choice, from, rest: rest(lines[from]) });
    from -= 1;
  }
  const ends = [...starts.slice(1).map((it) => it.from), lines.length];
  const noteOf = ({ from: start, rest }, index) => {
    const [, remark = '', text] = /^( \(.*?\))?(?:: )?(.*)$/s.exec([rest, ...lines.slice(start + 1, ends[index])].join('\n'));
    return { remark, text: text.trim() };
  };
  return { text: lines.slice(0, starts[0].from).join('\n').trim(), notes: new Map(starts.map((it, index) => [it.choice, noteOf(it, index)])) };
}

// The whole address is shown; only a web address becomes a link, without a referrer.
function addressOf(url) {
  const isWeb = /^https?:\/\//i.test(url);
  return h('div', {}, h('p', { class: 'muted' }, 'The tool asks you to open this address. Check its host first.'),
    h('p', { class: 'address mono' }, isWeb ? h('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, visibleNodes(url)) : visibleNodes(url)));
}
