// One question of a tool: a form, or an address to open.

import { argumentsEditor } from './arguments_editor.js';
import { button, h, replaceChildren } from './dom.js';
import { showError } from './rows.js';
import { answer } from './store.js';
import { visibleNodes } from './visible_text.js';

export function questionPage(question, onAnswered) {
  const message = h('div', { role: 'alert' });
  const gone = h('div', { class: 'note', role: 'status', hidden: true });
  const editor = question.mode === 'form' ? argumentsEditor(question.schema ?? { type: 'object' }, { hasJson: false }) : undefined;
  const [title, ...rest] = question.message.split('\n');
  const element = h('article', { class: 'question', data: { question: question.id, status: 'open' } });
  let isAnswered = false;

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
    if (editor && !editor.check()) return editor.focusFaults();
    return send({ action: 'accept', ...(editor && { content: editor.read() }) });
  };
  replaceChildren(element,
    h('div', { class: 'detail-head' }, h('div', {}, h('p', { class: 'eyebrow' }, 'A tool asks'), h('h2', { class: 'detail-title' }, visibleNodes(title)))),
    rest.length > 0 && h('p', { class: 'question-text' }, visibleNodes(rest.join('\n').trim())),
    gone,
    editor?.element,
    question.mode === 'url' && addressOf(question.url),
    h('div', { class: 'answers' }, message, h('div', { class: 'answer-bar' },
      button(editor ? 'Answer' : 'I have opened it', accept, { kind: 'primary', iconName: 'check', data: { action: 'accept' } }),
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

// The whole address is shown; only a web address becomes a link, without a referrer.
function addressOf(url) {
  const isWeb = /^https?:\/\//i.test(url);
  return h('div', {}, h('p', { class: 'muted' }, 'The tool asks you to open this address. Check its host first.'),
    h('p', { class: 'address mono' }, isWeb ? h('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, visibleNodes(url)) : visibleNodes(url)));
}
