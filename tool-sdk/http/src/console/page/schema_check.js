// Checks a value against a JSON Schema before it is sent. The server checks again; this only says
// earlier, and at its field, what is wrong.

const pointerOf = (pointer, key) => `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;

// Returns the schema behind a reference within the document.
export function resolve(schema, root) {
  let found = schema;
  for (let depth = 0; found && typeof found.$ref === 'string' && depth < 16; depth += 1) {
    const { $ref, ...rest } = found;
    const path = $ref.replace(/^#\/?/, '').split('/').filter(Boolean);
    const target = path.reduce((at, key) => at?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], root);
    found = target ? { ...target, ...rest } : rest;
  }
  return found === true || found === undefined ? {} : found;
}

export function typeOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

const isOfType = (value, type) => (type === 'integer' ? Number.isInteger(value) : type === 'number' ? typeof value === 'number' : typeOf(value) === type);

// Returns the faults of a value: `{ pointer, message }`.
export function checkValue(schema, value, root = schema, pointer = '') {
  const own = resolve(schema, root);
  if (own === false) return [{ pointer, message: 'is not allowed here' }];
  const faults = [];
  const fault = (message, at = pointer) => faults.push({ pointer: at, message });
  const types = own.type === undefined ? [] : [own.type].flat();
  if (types.length && !types.some((type) => isOfType(value, type))) {
    return [{ pointer, message: `must be ${types.map(typeName).join(' or ')}` }];
  }
  if (own.enum && !own.enum.some((it) => isEqual(it, value))) fault(`must be one of ${own.enum.map((it) => JSON.stringify(it)).join(', ')}`);
  if ('const' in own && !isEqual(own.const, value)) fault(`must be ${JSON.stringify(own.const)}`);
  if (typeof value === 'number') checkNumber(own, value, fault);
  if (typeof value === 'string') checkText(own, value, fault);
  if (Array.isArray(value)) checkItems(own, value, root, pointer, faults, fault);
  if (typeOf(value) === 'object') checkMembers(own, value, root, pointer, faults, fault);
  for (const part of own.allOf ?? []) faults.push(...checkValue(part, value, root, pointer));
  for (const key of ['anyOf', 'oneOf']) checkAlternatives(own[key], value, root, pointer, faults);
  return faults;
}

const NAMES = { integer: 'a whole number', number: 'a number', string: 'a text', boolean: 'true or false', array: 'a list', object: 'an object', null: 'null' };
const typeName = (type) => NAMES[type] ?? type;
const isEqual = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function checkNumber(schema, value, fault) {
  if (schema.minimum !== undefined && value < schema.minimum) fault(`must be at least ${schema.minimum}`);
  if (schema.maximum !== undefined && value > schema.maximum) fault(`must be at most ${schema.maximum}`);
  if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum) fault(`must be more than ${schema.exclusiveMinimum}`);
  if (schema.exclusiveMaximum !== undefined && value >= schema.exclusiveMaximum) fault(`must be less than ${schema.exclusiveMaximum}`);
  if (schema.multipleOf && Math.abs(value / schema.multipleOf - Math.round(value / schema.multipleOf)) > 1e-9) fault(`must be a multiple of ${schema.multipleOf}`);
}

function checkText(schema, value, fault) {
  const length = [...value].length;
  if (schema.minLength !== undefined && length < schema.minLength) fault(schema.minLength === 1 ? 'must not be empty' : `must have at least ${schema.minLength} characters`);
  if (schema.maxLength !== undefined && length > schema.maxLength) fault(`must have at most ${schema.maxLength} characters, and has ${length}`);
  if (schema.pattern && value.length < 10_000 && !matches(schema.pattern, value)) fault(`must match ${schema.pattern}`);
}

// A pattern that this browser does not know is left to the server.
function matches(pattern, value) {
  try {
    return new RegExp(pattern, 'u').test(value);
  } catch {
    return true;
  }
}

function checkItems(schema, value, root, pointer, faults, fault) {
  if (schema.minItems !== undefined && value.length < schema.minItems) fault(`must have at least ${schema.minItems} ${schema.minItems === 1 ? 'item' : 'items'}`);
  if (schema.maxItems !== undefined && value.length > schema.maxItems) fault(`must have at most ${schema.maxItems} items`);
  if (schema.uniqueItems && new Set(value.map((it) => JSON.stringify(it))).size < value.length) fault('must not have equal items');
  value.forEach((item, at) => {
    const of = schema.prefixItems?.[at] ?? schema.items;
    if (of !== undefined) faults.push(...checkValue(of, item, root, pointerOf(pointer, at)));
  });
}

function checkMembers(schema, value, root, pointer, faults, fault) {
  for (const name of schema.required ?? []) {
    if (value[name] === undefined) fault('is required', pointerOf(pointer, name));
  }
  for (const [name, item] of Object.entries(value)) {
    const of = schema.properties?.[name] ?? schema.additionalProperties;
    if (of === false) fault('is not an argument of this tool', pointerOf(pointer, name));
    else if (of !== undefined) faults.push(...checkValue(of, item, root, pointerOf(pointer, name)));
  }
}

function checkAlternatives(alternatives, value, root, pointer, faults) {
  if (!alternatives?.length) return;
  const results = alternatives.map((it) => checkValue(it, value, root, pointer));
  if (results.some((it) => !it.length)) return;
  // The alternative that fits best says what is wrong.
  const deepest = (list) => Math.max(...list.map((it) => it.pointer.length));
  faults.push(...results.sort((a, b) => deepest(b) - deepest(a) || a.length - b.length)[0]);
}

export { pointerOf };
