// A form made from a JSON Schema.
//
// Each field is `{ element, read, write }`. `read` returns the value, or `undefined` where nothing
// is set; a text that is no value of its type is read as it is, so that the check can say what is
// wrong with it. `write` shows a value. Nothing is sent that the form does not show.
//
// The form of a question, `isQuestion`, shows all members at once, and choices as buttons with what
// each means. An optional member that is left empty is not sent.

import { button, h, icon, uniqueId } from './dom.js';
import { pointerOf, resolve, typeOf } from './schema_check.js';
import { visible } from './visible_text.js';

// Returns the field of a schema. `onChange` is called after each change; `notes` has what each choice
// of a question means, by its value.
export function schemaField(schema, { root = schema, pointer = '', name = '', onChange = () => {}, isQuestion = false, notes = new Map() } = {}) {
  const own = resolve(schema, root);
  const at = { root, pointer, name, onChange, isQuestion, notes, schema: own };
  const choices = choicesOf(own);
  if (choices) return isQuestion ? optionsField(at, choices) : choiceField(at, choices);
  if ('const' in own) return constField(at);
  const alternatives = own.oneOf ?? own.anyOf;
  if (alternatives?.length) return alternativesField(at, alternatives);
  const types = [own.type ?? guessType(own)].flat();
  const type = types.find((it) => it !== 'null');
  if (types.length > 2) return jsonField(at);
  switch (type) {
    case 'object': return own.properties || own.additionalProperties === false ? objectField(at) : jsonField(at);
    case 'array': return arrayField(at);
    case 'boolean': return booleanField(at);
    case 'integer':
    case 'number': return numberField(at);
    case 'string': return textField(at);
    default: return jsonField(at);
  }
}

const guessType = (schema) => (schema.properties ? 'object' : schema.items ? 'array' : undefined);

// Returns `{ value, title, description }` of each choice, for enums with and without titles.
function choicesOf(schema) {
  const described = schema.oneOf ?? schema.anyOf;
  if (schema.enum) return schema.enum.map((value, index) => ({ value, title: String(schema.enumNames?.[index] ?? value) }));
  if (described?.length && described.every((it) => it && 'const' in it && it.properties === undefined)) {
    return described.map((it) => ({ value: it.const, title: it.title ?? String(it.const), description: it.description }));
  }
  return undefined;
}

// What every input has: its place for errors, and the text that describes it.
function inputAttributes(at) {
  return { data: { pointer: at.pointer }, 'aria-label': at.isLabelled ? undefined : at.name, oninput: at.onChange };
}

function textField(at) {
  const { schema } = at;
  const isSecret = schema.format === 'password';
  const attributes = { class: 'input', spellcheck: 'false', autocomplete: 'off', ...inputAttributes(at) };
  const input = isSecret ? h('input', { type: 'password', ...attributes }) : h('textarea', { rows: 1, ...attributes });
  if (schema.default !== undefined) input.placeholder = String(schema.default);
  return { element: input, read: () => input.value, write: (value) => { input.value = typeof value === 'string' ? value : JSON.stringify(value); } };
}

function numberField(at) {
  // A text input keeps what is typed; a number input drops what it cannot parse.
  const input = h('input', { class: 'input number', inputmode: 'decimal', autocomplete: 'off', ...inputAttributes(at) });
  if (at.schema.default !== undefined) input.placeholder = String(at.schema.default);
  const read = () => {
    const text = input.value.trim();
    return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? Number(text) : text === '' ? undefined : text;
  };
  return { element: input, read, write: (value) => { input.value = String(value ?? ''); } };
}

function booleanField(at) {
  const input = h('input', { type: 'checkbox', ...inputAttributes(at), oninput: undefined, onchange: at.onChange });
  const text = h('span', {}, 'Yes');
  return { element: h('label', { class: 'check' }, input, text), read: () => input.checked, write: (value) => { input.checked = value === true; } };
}

function choiceField(at, choices) {
  const select = h('select', { class: 'input', ...inputAttributes(at), oninput: undefined, onchange: at.onChange },
    choices.map((it, index) => h('option', { value: index }, visible(it.title))));
  const note = h('p', { class: 'field-note' });
  const describe = () => { note.textContent = visible(choices[select.value]?.description ?? ''); };
  select.addEventListener('change', describe);
  const write = (value) => {
    const found = choices.findIndex((it) => JSON.stringify(it.value) === JSON.stringify(value));
    if (found >= 0) select.value = String(found);
    describe();
  };
  write(at.schema.default ?? choices[0]?.value);
  return { element: h('div', {}, select, note), read: () => choices[select.value]?.value, write };
}

function constField(at) {
  return { element: h('code', { class: 'constant', data: { pointer: at.pointer } }, visible(JSON.stringify(at.schema.const))), read: () => at.schema.const, write: () => {} };
}

// One of several schemas: which one, and its field.
function alternativesField(at, alternatives) {
  const schemas = alternatives.map((it) => {
    const own = resolve(it, at.root);
    // Members beside the alternatives hold for each of them.
    return at.schema.properties ? { ...own, type: 'object', properties: { ...at.schema.properties, ...own.properties }, required: [...(at.schema.required ?? []), ...(own.required ?? [])] } : own;
  });
  const select = h('select', { class: 'input alternative', 'aria-label': `Kind of ${at.name || 'value'}` }, schemas.map((it, index) => h('option', { value: index }, alternativeTitle(it, index))));
  const place = h('div', { class: 'alternative-field' });
  let field;
  const show = (index) => {
    select.value = String(index);
    const isNull = schemas[index].type === 'null';
    field = isNull ? { element: h('code', { class: 'constant' }, 'null'), read: () => null, write: () => {} }
      : schemaField(schemas[index], { ...at, schema: undefined });
    place.replaceChildren(field.element);
  };
  select.addEventListener('change', () => { show(Number(select.value)); at.onChange(); });
  show(0);
  const write = (value) => {
    show(bestAlternative(schemas, value, at.root));
    field.write(value);
  };
  return { element: h('div', { class: 'alternatives' }, select, place), read: () => field.read(), write };
}

function alternativeTitle(schema, index) {
  const kind = Object.values(schema.properties ?? {}).find((it) => it && 'const' in it);
  return visible(schema.title ?? (kind ? String(kind.const) : undefined) ?? [schema.type].flat().join(' or ') ?? `Alternative ${index + 1}`);
}

function bestAlternative(schemas, value, root) {
  const score = (schema) => {
    const types = [schema.type ?? guessType(schema)].flat();
    const type = typeOf(value);
    if (!types.includes(type) && !(types.includes('integer') && type === 'number')) return -1;
    if (type !== 'object') return 1;
    const entries = Object.entries(schema.properties ?? {});
    if (entries.some(([key, it]) => 'const' in resolve(it, root) && resolve(it, root).const !== value[key])) return 0;
    return 1 + entries.filter(([key]) => key in value).length - (schema.required ?? []).filter((key) => !(key in value)).length * 2;
  };
  const scores = schemas.map(score);
  return scores.indexOf(Math.max(...scores));
}

function jsonField(at) {
  const input = h('textarea', { class: 'input mono', rows: 2, spellcheck: 'false', placeholder: 'JSON', ...inputAttributes(at) });
  const read = () => {
    if (!input.value.trim()) return undefined;
    try {
      return JSON.parse(input.value);
    } catch {
      return input.value;
    }
  };
  return { element: input, read, write: (value) => { input.value = JSON.stringify(value, null, 2); } };
}

function arrayField(at) {
  const items = at.schema.items ?? {};
  const choices = at.schema.uniqueItems || at.schema.items ? choicesOf(resolve(items, at.root)) : undefined;
  if (choices && at.isQuestion) return optionsField(at, choices, true);
  if (choices && (at.schema.uniqueItems || resolve(items, at.root).anyOf)) return checkboxesField(at, choices);
  const list = h('div', { class: 'items' });
  let fields = [];
  const addItem = (value, isUser) => {
    const field = schemaField(items, { ...at, pointer: pointerOf(at.pointer, fields.length), name: `${at.name} ${fields.length + 1}` });
    if (value !== undefined) field.write(value);
    fields.push(field);
    render();
    if (isUser) {
      at.onChange();
      list.lastElementChild.querySelector('input, textarea, select')?.focus();
    }
  };
  const removeItem = (index) => {
    const values = fields.map((it) => it.read());
    values.splice(index, 1);
    write(values);
    at.onChange();
    add.focus();
  };
  const render = () => list.replaceChildren(...fields.map((field, index) => {
    const label = `Remove ${at.name || 'item'} ${index + 1}`;
    return h('div', { class: 'item' }, h('div', { class: 'item-field' }, field.element), h('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick: () => removeItem(index) }, icon('cross')));
  }));
  const write = (values) => {
    fields = [];
    list.textContent = '';
    (Array.isArray(values) ? values : []).forEach((value) => addItem(value));
    render();
  };
  const add = button('Add item', () => addItem(undefined, true), { kind: 'small', iconName: 'plus', 'aria-label': `Add item to ${at.name || 'the list'}` });
  return { element: h('div', { class: 'array', data: { pointer: at.pointer } }, list, add), read: () => fields.map((it) => it.read()), write };
}

function checkboxesField(at, choices) {
  const inputs = choices.map(() => h('input', { type: 'checkbox', onchange: at.onChange }));
  const element = h('div', { class: 'checks', role: 'group', 'aria-label': at.name, data: { pointer: at.pointer } },
    choices.map((it, index) => h('label', { class: 'check' }, inputs[index], h('span', {}, visible(it.title), it.description && h('span', { class: 'muted' }, ` — ${visible(it.description)}`)))));
  const write = (values) => inputs.forEach((input, index) => { input.checked = Array.isArray(values) && values.some((it) => JSON.stringify(it) === JSON.stringify(choices[index].value)); });
  return { element, read: () => choices.filter((_, index) => inputs[index].checked).map((it) => it.value), write };
}

// One button for each choice of a question, with what the choice means: of one choice, or of several.
function optionsField(at, choices, isMultiple = false) {
  const group = uniqueId('options');
  const inputs = choices.map(() => h('input', { type: isMultiple ? 'checkbox' : 'radio', name: group, onchange: changed }));
  const clear = button('Clear the choice', () => { write(undefined); at.onChange(); }, { kind: 'small quiet', data: { action: 'clear' } });
  const option = ({ value, title, description }, index) => {
    const { remark = '', text: note = description } = at.notes.get(value) ?? {};
    return h('label', { class: 'option' }, inputs[index], h('span', {}, h('span', { class: 'strong' }, visible(title)), visible(remark), note && h('span', { class: 'option-note' }, visible(note))));
  };
  const element = h('div', { class: 'options', role: isMultiple ? 'group' : 'radiogroup', 'aria-label': at.name, data: { pointer: at.pointer } }, choices.map(option), clear);
  const isEqual = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const chosen = () => choices.filter((_, index) => inputs[index].checked).map((it) => it.value);
  function changed() {
    clear.hidden = isMultiple || chosen().length === 0;
    at.onChange();
  }
  function write(value) {
    inputs.forEach((input, index) => { input.checked = isMultiple ? Array.isArray(value) && value.some((it) => isEqual(it, choices[index].value)) : isEqual(value, choices[index].value); });
    clear.hidden = isMultiple || chosen().length === 0;
  }
  write(at.schema.default);
  return { element, read: () => (isMultiple ? chosen() : chosen()[0]), write };
}

// Required members are always there; optional ones once they are added, or at once in a question.
function objectField(at) {
  const properties = Object.entries(at.schema.properties ?? {});
  const required = new Set(at.schema.required ?? []);
  const set = new Map();
  // Members that the schema does not name, which only the raw JSON can change.
  let rest = {};
  const shown = h('div', { class: 'fields' });
  const unset = h('div', { class: 'optional' });
  const makeField = (name) => schemaField(at.schema.properties[name], { ...at, pointer: pointerOf(at.pointer, name), name: at.isQuestion ? at.schema.properties[name]?.title ?? name : name });
  const isOpen = (name) => required.has(name) || at.isQuestion;
  const isLeftOut = (name, value) => at.isQuestion && !required.has(name) && (value === '' || (Array.isArray(value) && !value.length));

  const addMember = (name, value, isUser) => {
    const field = makeField(name);
    if (value !== undefined) field.write(value);
    else if (isUser) {
      const initial = resolve(at.schema.properties[name], at.root).default;
      if (initial !== undefined && initial !== null) field.write(initial);
    }
    set.set(name, field);
    render();
    if (isUser) {
      at.onChange();
      field.element.querySelector?.('input, textarea, select, button')?.focus();
      if (field.element.matches?.('input, textarea, select')) field.element.focus();
    }
  };
  const removeMember = (name) => {
    set.delete(name);
    render();
    at.onChange();
    unset.querySelector(`[data-member="${CSS.escape(name)}"]`)?.focus();
  };
  const rows = new Map();
  const render = () => {
    const names = properties.map(([name]) => name);
    shown.replaceChildren(...names.filter((it) => set.has(it)).map((name) => {
      if (rows.get(name)?.field !== set.get(name)) rows.set(name, { field: set.get(name), row: memberRow(at, name, set.get(name), isOpen(name) ? undefined : () => removeMember(name), required.has(name)) });
      return rows.get(name).row;
    }));
    const left = names.filter((it) => !set.has(it));
    unset.hidden = left.length === 0;
    unset.replaceChildren(...(left.length ? [h('p', { class: 'optional-title' }, 'Optional'), ...left.map((name) => optionalRow(at, name, () => addMember(name, undefined, true)))] : []));
  };
  const write = (value) => {
    const members = value && typeof value === 'object' && !Array.isArray(value) ? value : {};
    const known = new Set(properties.map(([name]) => name));
    rest = Object.fromEntries(Object.entries(members).filter(([name]) => !known.has(name)));
    for (const [name] of properties) {
      if (members[name] === undefined && !isOpen(name)) set.delete(name);
      else if (set.has(name)) set.get(name).write(members[name] ?? emptyValue(at, name));
      else addMember(name, members[name]);
    }
    render();
  };
  for (const [name] of properties) {
    if (!isOpen(name)) continue;
    const field = makeField(name);
    const initial = at.isQuestion ? resolve(at.schema.properties[name], at.root).default : undefined;
    if (initial !== undefined && initial !== null) field.write(initial);
    set.set(name, field);
  }
  render();
  const read = () => {
    const value = {};
    for (const [name] of properties) {
      const item = set.get(name)?.read();
      if (item !== undefined && !isLeftOut(name, item)) value[name] = item;
    }
    return { ...value, ...rest };
  };
  return { element: h('div', { class: at.pointer ? 'object nested' : 'object', data: { pointer: at.pointer } }, shown, unset), read, write };
}

const emptyValue = (at, name) => {
  const type = resolve(at.schema.properties[name], at.root).type;
  return type === 'array' ? [] : type === 'object' ? {} : type === 'string' ? '' : undefined;
};

function memberRow(at, name, field, onRemove, isRequired) {
  const schema = resolve(at.schema.properties[name], at.root);
  const id = uniqueId('field');
  const input = field.element.matches('[role]') ? undefined : field.element.matches('input, textarea, select') ? field.element : field.element.querySelector(':scope > input, :scope > select, :scope > label > input');
  if (input) {
    input.id = id;
    input.removeAttribute('aria-label');
    input.setAttribute('aria-describedby', `${id}-note`);
  }
  const isGroup = !input;
  const attributes = isGroup ? { role: 'group', 'aria-labelledby': `${id}-label`, 'aria-describedby': `${id}-note` } : {};
  return h('div', { class: 'field', ...attributes },
    h('div', { class: 'field-head' },
      h(isGroup ? 'span' : 'label', isGroup ? { class: 'field-name', id: `${id}-label` } : { class: 'field-name', for: id }, visible((at.isQuestion && schema.title) || name)),
      !at.isQuestion && h('span', { class: 'field-type' }, describeType(schema)),
      !onRemove && !isRequired ? h('span', { class: 'field-required' }, 'optional') : onRemove ? h('button', { type: 'button', class: 'icon-button', 'aria-label': `Leave out ${name}`, title: `Leave out ${name}`, onclick: onRemove }, icon('cross')) : h('span', { class: 'field-required' }, 'required')),
    h('p', { class: 'field-note', id: `${id}-note` }, visible(schema.description ?? '')),
    field.element);
}

function optionalRow(at, name, onAdd) {
  const schema = resolve(at.schema.properties[name], at.root);
  return h('button', { type: 'button', class: 'optional-row', data: { member: name }, title: visible(schema.description ?? ''), onclick: onAdd },
    icon('plus'), h('span', { class: 'hidden-label' }, 'Add '), h('span', { class: 'field-name' }, visible(name)),
    h('span', { class: 'field-type' }, describeType(schema), schema.default !== undefined && schema.default !== null ? ` · default ${visible(JSON.stringify(schema.default))}` : ''),
    h('span', { class: 'optional-note' }, visible(schema.description ?? '')));
}

// Returns the type and the bounds in words, such as `whole number, 1 to 100`.
export function describeType(schema) {
  const types = [schema.type ?? guessType(schema) ?? (schema.enum ? 'choice' : schema.oneOf || schema.anyOf ? 'one of several' : 'any')].flat();
  const names = { integer: 'whole number', number: 'number', string: 'text', boolean: 'yes or no', array: 'list', object: 'object', null: 'null' };
  const name = schema.enum ? 'choice' : types.map((it) => names[it] ?? it).join(' or ');
  const range = rangeOf(schema.minimum, schema.maximum) || rangeOf(schema.minLength, schema.maxLength, ' characters') || rangeOf(schema.minItems, schema.maxItems, ' items');
  return range ? `${name}, ${range}` : name;
}

function rangeOf(min, max, unit = '') {
  if (max >= 2 ** 31) max = undefined;
  if (min === 0 && max === undefined) return '';
  if (min !== undefined && max !== undefined) return `${min} to ${max}${unit}`;
  if (max !== undefined) return `at most ${max}${unit}`;
  return min !== undefined ? `at least ${min}${unit}` : '';
}
