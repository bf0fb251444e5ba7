// The arguments of a call: a form, and the JSON that is sent beside it. Both always show the same;
// while the JSON is not valid nothing can be sent.

import { h, uniqueId } from './dom.js';
import { checkValue } from './schema_check.js';
import { schemaField } from './schema_form.js';
import { visible } from './visible_text.js';

// Returns `{ element, read, write, check, isJson, showFaults, sentText }`. `isJson` says whether the
// JSON is valid, so that what `read` returns is what is shown. The form of a question, `isQuestion`, has
// no JSON; `notes` has what its choices mean.
export function argumentsEditor(schema, { onChange = () => {}, value = {}, isQuestion = false, notes } = {}) {
  const hasJson = !isQuestion;
  const field = schemaField(schema, { onChange: fromForm, isQuestion, notes });
  const id = uniqueId('json');
  const json = h('textarea', { id, class: 'input mono json-input', spellcheck: 'false', rows: 6, oninput: fromJson, 'aria-describedby': `${id}-error` });
  const jsonError = h('p', { class: 'field-error', id: `${id}-error`, 'aria-live': 'polite' });
  const summary = h('div', { class: 'fault-summary', tabindex: -1, hidden: true, role: 'group', 'aria-label': 'Problems with the arguments' });
  const element = h('form', { class: 'arguments', data: { status: 'unchecked' }, novalidate: true, onsubmit: (event) => event.preventDefault() },
    summary,
    h('div', { class: hasJson ? 'arguments-sides' : '' },
      h('div', { class: 'arguments-form' }, field.element),
      hasJson && h('div', { class: 'arguments-json' }, h('label', { class: 'side-title', for: id }, 'JSON that is sent'), json, jsonError)));
  let current = value;
  let isJsonValid = true;

  function fromForm() {
    current = field.read();
    isJsonValid = true;
    json.value = JSON.stringify(current, null, 2);
    jsonError.textContent = '';
    afterChange();
  }

  function fromJson() {
    try {
      current = JSON.parse(json.value);
      isJsonValid = true;
      jsonError.textContent = '';
      field.write(current);
    } catch (error) {
      isJsonValid = false;
      jsonError.textContent = `This is not valid JSON: ${error.message}`;
    }
    afterChange();
  }

  function afterChange() {
    if (element.dataset.status !== 'unchecked') check();
    onChange();
  }

  // Shows the faults of the arguments; returns whether there is none.
  function check() {
    const faults = isJsonValid ? checkValue(schema, current) : [{ pointer: '', message: 'the JSON is not valid' }];
    showFaults(faults);
    return faults.length === 0;
  }

  function showFaults(faults) {
    element.dataset.status = faults.length ? 'invalid' : 'valid';
    for (const old of element.querySelectorAll('.field-error.of-field')) old.remove();
    for (const input of element.querySelectorAll('[aria-invalid]')) {
      input.removeAttribute('aria-invalid');
      describe(input, input.dataset.fault, false);
    }
    summary.hidden = faults.length === 0;
    summary.replaceChildren(...(faults.length ? [h('p', { class: 'fault-title' }, faults.length === 1 ? 'One problem' : `${faults.length} problems`), h('ul', {}, faults.map(faultLine))] : []));
  }

  function faultLine({ pointer, message }) {
    const target = findTarget(pointer);
    const name = pointer.slice(1).replaceAll('/', ' › ') || 'The arguments';
    if (target) markFault(target, message);
    const focus = () => (target ?? json).focus();
    return h('li', {}, h('button', { type: 'button', class: 'link', onclick: focus }, `${visible(name)} ${visible(message)}`));
  }

  // Returns the input of the pointer, or of the member around it.
  function findTarget(pointer) {
    for (let at = pointer; ; at = at.slice(0, at.lastIndexOf('/'))) {
      const found = element.querySelector(`[data-pointer="${CSS.escape(at)}"]`);
      if (found) return found;
      if (!at.includes('/')) return undefined;
    }
  }

  function markFault(target, message) {
    const id = uniqueId('fault');
    target.setAttribute('aria-invalid', 'true');
    target.dataset.fault = id;
    describe(target, id, true);
    if (!target.matches('input, textarea, select')) target.tabIndex = -1;
    const error = h('p', { class: 'field-error of-field', id }, visible(message));
    if (target.dataset.pointer) (target.closest('.check') ?? target).after(error);
  }

  // Adds the fault to what describes an input, or removes it.
  function describe(input, id, isAdded) {
    const ids = (input.getAttribute('aria-describedby') ?? '').split(' ').filter((it) => it && it !== id);
    if (isAdded) ids.push(id);
    if (ids.length) input.setAttribute('aria-describedby', ids.join(' '));
    else input.removeAttribute('aria-describedby');
  }

  function write(next) {
    current = next;
    field.write(next);
    current = { ...field.read(), ...next };
    json.value = JSON.stringify(current, null, 2);
    isJsonValid = true;
    jsonError.textContent = '';
  }

  if (isQuestion) current = field.read();
  else write(value);
  return { element, read: () => current, write, check, isJson: () => isJsonValid, showFaults, focusFaults: () => summary.focus(), sentText: () => JSON.stringify(current) };
}
