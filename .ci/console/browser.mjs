// Uses the console as a person does. Each step says what holds; the first that does not hold ends
// the run with a picture.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

const { PROJECT, TOOL_SDK_TOKEN, BROWSER, PICTURES } = process.env;
const PORT = Number(new URL(process.env.LINK).port);
// The browser connects through a relay, which can cut its connections.
const LINK = process.env.LINK.replace('127.0.0.1', 'localhost');
const BASE = LINK.split('/#')[0];
const AXE = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const HOSTILE = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>\n'
  + 'safe\u202Egnp.exe \u200B\u0007 \u001b]0;owned\u0007 \u001b[31mred\u001b[0m\n';

const file = (name) => join(PROJECT, name);
writeFileSync(file('main.rs'), 'fn main() {\n    println!("hello");\n}\n\nfn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n');
writeFileSync(file('README.md'), '# Demo\n\nA small project.\n');
writeFileSync(file('hostile.txt'), HOSTILE);

const relay = await startRelay();
const rules = `--host-resolver-rules=MAP localhost:${PORT} 127.0.0.1:${relay.port}`;
const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu', rules] });
const problems = [];

// Passes connections on to the program, as long as it is open.
async function startRelay() {
  const sockets = new Set();
  const relay = { isOpen: true, cut: () => { relay.isOpen = false; sockets.forEach((it) => it.destroy()); } };
  const server = createServer((socket) => {
    if (!relay.isOpen) return socket.destroy();
    const target = connect(PORT, '127.0.0.1');
    for (const [from, to] of [[socket, target], [target, socket]]) {
      sockets.add(from);
      from.on('error', () => {}).on('close', () => { sockets.delete(from); to.destroy(); });
      from.pipe(to);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.port = server.address().port;
  return relay;
}

async function openContext(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, colorScheme: 'light', ...options });
  context.setDefaultTimeout(60_000);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: BASE });
  return context;
}

async function openPage(context, address = `${BASE}/`) {
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => { if (/Content.Security|TrustedHTML/i.test(message.text())) problems.push(message.text()); });
  await page.goto(address);
  return page;
}

const ready = (page) => page.waitForSelector('#app[data-status=ready]');
const live = (page) => page.waitForSelector('[data-part=connection][data-status=live]');
const visit = (page, place) => page.evaluate((hash) => { location.hash = hash; }, place);

// Calls a tool as another client.
async function callTool(tool, args) {
  const headers = { Authorization: `Bearer ${TOOL_SDK_TOKEN}`, 'Content-Type': 'application/json' };
  const response = await fetch(`http://127.0.0.1:${PORT}/v1/tools/${tool}`, { method: 'POST', headers, body: JSON.stringify(args) });
  return { status: response.status, body: await response.json() };
}

// Returns an event that happens once.
function signal() {
  let send;
  const wait = new Promise((resolve) => { send = resolve; });
  return { send, wait };
}

async function checkAccess(page, where) {
  // The policy forbids scripts in the page, not those of the debugger.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const serious = violations.filter((it) => ['serious', 'critical'].includes(it.impact));
  const shown = serious.map((it) => `${it.id}: ${it.help}\n${it.nodes.slice(0, 3).map((node) => `  ${node.target} ${node.failureSummary}`).join('\n')}`);
  assert.equal(serious.length, 0, `${where}:\n${shown.join('\n')}`);
}

async function takePicture(page, name) {
  if (!PICTURES) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

const context = await openContext();
let page;
let approvalOf;

const steps = {
  async 'the page asks for the link, and the link signs in once'() {
    page = await openPage(context);
    await page.waitForSelector('#app[data-status=signed-out]');
    await checkAccess(page, 'sign-in');
    await page.close();
    page = await openPage(context, LINK);
    await ready(page);
    assert.equal(page.url().includes(LINK.split('#')[1]), false, 'the code is not in the address');
    const cookies = await context.cookies();
    assert.deepEqual(cookies.map((it) => [it.httpOnly, it.sameSite]), [[true, 'Strict']]);
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.documentElement.outerHTML]));
    for (const secret of [TOOL_SDK_TOKEN, cookies[0].value]) assert.equal(stored.includes(secret), false);
    // A server at another port of this machine gets the cookie, which is worth nothing alone.
    const replayed = await fetch(`http://127.0.0.1:${PORT}/console/session`, { headers: { Cookie: `${cookies[0].name}=${cookies[0].value}` } });
    assert.equal(replayed.status, 401);
    const other = await openContext();
    const second = await openPage(other, LINK);
    await second.waitForSelector('#app[data-status=signed-out]');
    await other.close();
    await page.reload();
    await ready(page);
    await live(page);
  },

  async 'tools are listed by category and searched'() {
    await visit(page, '#/tools');
    await page.waitForFunction(() => document.querySelectorAll('.list a.row').length > 20);
    await page.fill('input[type=search]', 'regular expression');
    await page.waitForFunction(() => document.querySelectorAll('.list a.row').length < 10);
    await page.waitForSelector('.list [data-tool=grep_files]');
    await page.fill('input[type=search]', '');
    await page.click('.list [data-tool=grep_files]');
    await page.waitForSelector('article[data-tool=grep_files]');
    await checkAccess(page, 'tools');
  },

  async 'invalid input is marked at its field and not sent'() {
    await page.click('[data-action=run]');
    await page.waitForSelector('form.arguments[data-status=invalid]');
    assert.match(await page.textContent('.fault-summary'), /pattern must not be empty/);
    assert.equal(await page.getAttribute('[data-pointer="/pattern"]', 'aria-invalid'), 'true');
    await page.click('[data-member=limit]');
    await page.fill('[data-pointer="/limit"]', 'many');
    assert.match(await page.textContent('.fault-summary'), /limit must be a whole number/);
    await page.fill('[data-pointer="/limit"]', '3000');
    assert.match(await page.textContent('.fault-summary'), /limit must be at most 2000/);
    await checkAccess(page, 'invalid form');
    await page.fill('.json-input', '{"pattern": ');
    assert.match(await page.textContent('.arguments-json .field-error'), /not valid JSON/);
    await page.click('[data-action=run]');
    assert.equal(await page.locator('.call-panel').count(), 0, 'nothing was sent');
  },

  async 'a call runs, and its hits are shown'() {
    await page.fill('.json-input', '{"pattern": "fn \\\\w+", "limit": 10}');
    assert.equal(await page.inputValue('[data-pointer="/pattern"]'), 'fn \\w+');
    await page.click('[data-action=run]');
    await page.waitForSelector('.call-panel[data-status=completed]');
    await page.waitForSelector('.hits-file:has-text("main.rs")');
    assert.equal(await page.locator('.hits .line').count(), 2);
    await page.click('.copy-as >> text=curl');
    await page.waitForSelector('.copied:has-text("Copied")');
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(copied.startsWith('curl -H "Authorization: Bearer $TOKEN"') && copied.includes('/v1/tools/grep_files'), copied);
    await page.click('[role=tab]:has-text("Text for the model")');
    await page.waitForSelector('.tab-panel .text:has-text("Found 2 matches")');
  },

  async 'a form with nested values is filled in'() {
    await visit(page, '#/tools/edit_file');
    await page.fill('[data-pointer="/path"]', 'main.rs');
    await page.click('[data-member=edits]');
    for (const [index, [from, to]] of [['hello', 'good morning'], ['a + b', 'a.wrapping_add(b)']].entries()) {
      await page.click('[aria-label="Add item to edits"]');
      await page.fill(`[data-pointer="/edits/${index}/old_string"]`, from);
      await page.fill(`[data-pointer="/edits/${index}/new_string"]`, to);
    }
    await page.click('[aria-label="Add item to edits"]');
    await page.click('[aria-label="Remove edits 3"]');
    const sent = JSON.parse(await page.inputValue('.json-input'));
    assert.deepEqual(sent, { path: 'main.rs', edits: [{ old_string: 'hello', new_string: 'good morning' }, { old_string: 'a + b', new_string: 'a.wrapping_add(b)' }] });
    await checkAccess(page, 'nested form');
    await takePicture(page, 'tool');
    await page.click('[data-action=run]');
    await page.waitForSelector('.call-panel[data-status=waiting]');
    await page.waitForSelector('nav .count:has-text("1")');
  },

  async 'alternatives, choices and other results are shown'() {
    const found = await page.evaluate(async () => {
      const { argumentsEditor } = await import('/console/arguments_editor.js');
      const { resultParts } = await import('/console/result_view.js');
      const schema = {
        type: 'object',
        required: ['shape', 'tags'],
        properties: {
          shape: { oneOf: [{ $ref: '#/$defs/circle' }, { type: 'object', required: ['kind', 'width'], properties: { kind: { const: 'square' }, width: { type: 'integer', minimum: 1 } } }] },
          tags: { type: 'array', uniqueItems: true, items: { enum: ['a', 'b', 'c'] } },
          note: { type: ['string', 'null'] },
          colour: { oneOf: [{ const: 'r', title: 'Red' }, { const: 'b', title: 'Blue' }] },
        },
        $defs: { circle: { type: 'object', required: ['kind', 'radius'], properties: { kind: { const: 'circle' }, radius: { type: 'number', exclusiveMinimum: 0 } } } },
      };
      const value = { shape: { kind: 'square', width: 2 }, tags: ['b'], colour: 'b' };
      const editor = argumentsEditor(schema, { value });
      document.querySelector('main').append(editor.element);
      const before = { isRight: editor.check(), value: editor.read() };
      const select = editor.element.querySelector('select.alternative');
      select.value = '0';
      select.dispatchEvent(new Event('change'));
      const radius = editor.element.querySelector('[data-pointer="/shape/radius"]');
      radius.value = '0';
      radius.dispatchEvent(new Event('input', { bubbles: true }));
      editor.check();
      const after = { value: editor.read(), fault: editor.element.querySelector('.field-error.of-field')?.textContent, colour: editor.element.querySelector('[data-pointer="/colour"]')?.selectedOptions[0].textContent };
      editor.element.remove();
      const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
      const parts = resultParts({ text: 'x', structured: [{ a: 1, b: 'two' }], attachments: [{ mime: 'image/png', base64: dot }, { mime: 'image/svg+xml', base64: btoa('<svg onload="alert(1)"/>') }] });
      const count = (selector) => parts.reduce((sum, it) => sum + it.element.querySelectorAll(selector).length, 0);
      const { headlineOf, originOf } = await import('/console/headline.js');
      const headlines = [
        { tool: 'x', display: { name: 'Plan', show: ['plan'] }, summary: 'Plan of 2 steps', arguments: { plan: [{ step: 'one' }, { step: 'two' }] } },
        { tool: 'x', display: { name: 'Todos', show: ['action', 'todos'] }, arguments: { action: 'add', todos: [{ content: 'one' }] } },
        { tool: 'x', display: { name: 'Ask', primary: 'question', show: ['question', 'options'] }, arguments: { question: 'Which?', options: [{ label: 'a' }, { label: 'b' }] } },
        { tool: 'x', display: { primary: 'at', sensitive: ['key'], show: ['at', 'key', 'tags'] }, arguments: { at: 'a.rs', key: 'k', tags: ['b', 'c'] } },
        { tool: 'x', arguments: { a: 1, b: { c: 2 } } },
        { tool: 'x', display: { name: 'Leave' }, summary: 'Leaving the mode', arguments: {} },
      ].map(headlineOf).map(({ name, detail, notes }) => [name, detail, ...notes]);
      return { before, after, headlines, origin: originOf({ source: { type: 'plugin', id: 'kit' } }), titles: parts.map((it) => it.title), images: count('img'), svg: count('svg'), cells: count('td') };
    });
    assert.equal(found.origin, 'kit');
    assert.deepEqual(found.headlines, [['Plan', 'Plan of 2 steps', 'plan: 2 entries'], ['Todos', 'add', 'todos: 1 entry'], ['Ask', 'Which?', 'options: 2 entries'], ['x', 'a.rs', 'key: ***', 'tags: b, c'], ['x', '', 'a: 1', 'b: 1 entry'], ['Leave', 'Leaving the mode']]);
    assert.deepEqual(found.before, { isRight: true, value: { shape: { kind: 'square', width: 2 }, tags: ['b'], colour: 'b' } });
    assert.deepEqual(found.after, { value: { shape: { kind: 'circle', radius: 0 }, tags: ['b'], colour: 'b' }, fault: 'must be more than 0', colour: 'Blue' });
    assert.deepEqual([found.titles.slice(0, 3), found.images, found.svg, found.cells], [['Attachments', 'Data', 'Text for the model'], 1, 0, 2]);
  },

  async 'an edit is approved after its diff'() {
    await page.click('text=Decide in the inbox');
    await page.waitForSelector('.approval[data-status=open]');
    assert.deepEqual(await page.locator('.diff-line.add .diff-text').allTextContents(), ['    println!("good morning");', '    a.wrapping_add(b)']);
    assert.ok(readFileSync(file('main.rs'), 'utf8').includes('hello'), 'nothing ran yet');
    await page.click('.scopes summary');
    await page.fill('[aria-label="Pattern 1"]', '*.rs');
    await checkAccess(page, 'approval');
    await takePicture(page, 'approval');
    await page.waitForTimeout(450);
    await page.click('[data-action=once]');
    await page.waitForSelector('text=Nothing waits');
    await visit(page, '#/calls');
    await page.click('.list a.row[data-status=completed]:has-text("Edit")');
    await page.waitForSelector('.call-panel .diff');
    assert.ok(readFileSync(file('main.rs'), 'utf8').includes('wrapping_add'));
  },

  async 'the calls of other clients appear live'() {
    const before = await page.locator('.list a.row').count();
    const { status } = await callTool('read_file', { path: 'README.md' });
    assert.equal(status, 200);
    await page.waitForFunction((count) => document.querySelectorAll('.list a.row').length > count, before);
    await page.waitForSelector('.list a.row >> nth=0 >> text=README.md');
    await page.click('.list a.row >> nth=0');
    await page.waitForSelector('.call-panel[data-status=completed]');
    await checkAccess(page, 'calls');
  },

  async 'calls have a time and a client, also for a browser that comes later'() {
    const other = await openPage(context, `${BASE}/#/calls`);
    await ready(other);
    await other.waitForSelector('.list a.row >> text=README.md');
    for (const it of [page, other]) {
      const rows = await it.evaluate(() => [...document.querySelectorAll('.list a.row')].map((row) => row.querySelector('.row-side time')?.dateTime));
      assert.ok(rows.length > 2 && rows.every((at) => Date.now() - Date.parse(at) < 600_000), rows.join());
      await it.click('.list a.row:has-text("README.md")');
      const shown = await it.textContent('.call-page .facts');
      assert.match(shown, /Time.*\d\d:\d\d:\d\d.*Forthe owner of the server.*ClientHTTP API/);
    }
    assert.match(await other.textContent('.list a.row:has-text("README.md")'), /HTTP API/);
    await other.close();
  },

  async 'the results of other clients are shown, or why they are not'() {
    const asked = [];
    const listen = (response) => asked.push([response.status(), new URL(response.url()).pathname]);
    page.on('response', listen);
    await visit(page, '#/calls');
    await page.click('.list a.row:has-text("README.md")');
    await page.waitForSelector('.call-panel .lines:has-text("A small project.")');
    await page.click('[role=tab]:has-text("Text for the model")');
    await page.waitForSelector('.tab-panel .text:has-text("# Demo")');
    // Over MCP the text goes to the client alone.
    const headers = { Authorization: `Bearer ${TOOL_SDK_TOKEN}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    const send = (message, more) => fetch(`http://127.0.0.1:${PORT}/mcp`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
    const begun = await send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'suite', version: '1' } } });
    const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') };
    await begun.text();
    await send({ method: 'notifications/initialized' }, session);
    await (await send({ id: 2, method: 'tools/call', params: { name: 'list_dir', arguments: { path: '.' } } }, session)).text();
    await page.click('.list a.row:has-text("MCP") >> nth=0');
    await page.waitForSelector('.call-panel .note:has-text("went to its own client")');
    assert.match(await page.textContent('.call-page .facts'), /ClientMCP/);
    await page.reload();
    await ready(page);
    await page.waitForSelector('.call-panel .note:has-text("went to its own client")');
    page.off('response', listen);
    assert.deepEqual(asked.filter(([status]) => status >= 400), []);
  },

  async 'a command is rejected with feedback'() {
    const called = callTool('exec_command', { cmd: 'touch made && echo "a\u202Eb"', justification: 'See whether it works' });
    await page.waitForSelector('nav .count:has-text("1")');
    await visit(page, '#/inbox');
    await page.waitForSelector('.command-block:has-text("touch made")');
    assert.ok((await page.textContent('.command-block')).includes('\\u{202e}'), 'what is invisible is shown');
    await page.waitForSelector('.alert.warning');
    // What the model says of the command cannot be taken for a part of it.
    for (const place of ['.detail-title', '.list a.row']) {
      assert.equal(await page.textContent(`${place} .call-detail`), 'touch made && echo "a\\u{202e}b"');
      assert.equal(await page.textContent(`${place} .call-note`), 'justification: See whether it works');
    }
    await page.waitForTimeout(450);
    await page.keyboard.press('Shift+R');
    await page.keyboard.type('use the notes folder');
    assert.equal(await page.getAttribute('.approval', 'data-status'), 'open');
    await page.keyboard.press('Control+Enter');
    const { status, body } = await called;
    assert.equal(status, 403);
    assert.match(body.error, /use the notes folder/);
    assert.equal(existsSync(file('made')), false);
  },

  async 'all characters of a multi-line argument are shown'() {
    const content = 'first\n\u001b]0;hidden\u0007second\rthird\u001b[2K\n';
    const called = callTool('write_file', { path: 'shown.txt', content });
    await page.waitForSelector('.approval[data-status=open]');
    await page.waitForSelector('.alert.warning');
    const shown = await page.textContent('.argument-list pre[aria-label=content]');
    assert.equal(shown, 'first\n\\u{1b}]0;hidden\\u{7}second\\u{d}third\\u{1b}[2K\n');
    await page.waitForTimeout(450);
    await page.click('[data-action=reject]');
    assert.equal((await called).status, 403);
    const found = await page.evaluate(async () => {
      const { hasHiddenWithin } = await import('/console/visible_text.js');
      return [{ a: ['x', { b: '\u001b[2K' }] }, ['a\rb'], { 'a\u200b': 1 }, { a: ['x\ty\n', 1, null] }].map(hasHiddenWithin);
    });
    assert.deepEqual(found, [true, true, true, false]);
  },

  async 'a key that is held down answers one request'() {
    const called = ['held-1', 'held-2'].map((name) => callTool('exec_command', { cmd: `mkdir ${name}` }));
    await page.waitForSelector('nav .count:has-text("2")');
    await page.waitForSelector('.approval[data-status=open]');
    const first = await page.getAttribute('.approval', 'data-approval');
    await page.waitForTimeout(450);
    await page.locator('body').focus();
    await page.keyboard.down('Shift');
    await page.keyboard.down('A');
    await page.waitForSelector(`.approval[data-status=open]:not([data-approval="${first}"])`);
    await page.waitForTimeout(450);
    // The key is still down, so this press is a repeated one.
    await page.keyboard.down('A');
    assert.equal(await page.getAttribute('.approval', 'data-status'), 'open');
    await page.keyboard.up('A');
    await page.keyboard.press('A');
    await page.keyboard.up('Shift');
    assert.deepEqual((await Promise.all(called)).map((it) => it.status), [200, 200]);
  },

  async 'a long list is seen before more than one call is allowed'() {
    const found = await page.evaluate(async () => {
      const { approvalPage } = await import('/console/approval_page.js');
      const items = Array.from({ length: 620 }, (_, index) => index);
      const request = { id: 'none', session: 'session-1', tool: 'write_file', arguments: { deep: { items } }, subjects: [], suggestions: ['*'], rules: [], reason: 'r', fingerprint: 'f'.repeat(64), risk: { class: 'write' } };
      const { element } = approvalPage(request, () => {});
      document.querySelector('main').append(element);
      for (const it of element.querySelectorAll('.argument-list details')) it.open = true;
      const isRefused = () => element.querySelector('[role=alert]').textContent.includes('look at all');
      const press = (action) => element.querySelector(`[data-action=${action}]`).click();
      press('session');
      const before = isRefused();
      await new Promise((resolve) => setTimeout(resolve, 450));
      press('more');
      press('session');
      const after = isRefused();
      const leaves = element.querySelectorAll('.argument-list .json-number').length;
      element.remove();
      return { before, after, leaves };
    });
    assert.deepEqual(found, { before: true, after: false, leaves: 620 });
  },

  async 'arguments are edited before they are approved'() {
    const called = callTool('exec_command', { cmd: 'touch wrong' });
    await page.waitForSelector('.approval[data-status=open]');
    // The session is that of this call, so nothing further can be allowed in it.
    await page.waitForTimeout(450);
    for (let presses = 0; presses < 2; presses += 1) await page.keyboard.press('Shift+S');
    await page.waitForSelector('.scopes details[open]:has-text("ends with its request")');
    assert.deepEqual([await page.locator('[data-action=session]').count(), await page.locator('[data-action=always]').count()], [0, 1]);
    assert.equal(await page.getAttribute('.approval', 'data-status'), 'open');
    await page.click('[data-action=edit]');
    await page.waitForTimeout(450);
    await page.fill('.approval .json-input', '{"cmd": ');
    await page.click('[data-action=once]');
    await page.waitForSelector('.approval[data-status=open] .fault-summary:has-text("not valid")');
    await page.fill('.approval .json-input', '{"cmd": "touch wrong"}');
    await page.fill('.approval [data-pointer="/cmd"]', 'touch right');
    await page.click('[data-action=once]');
    const { status, body } = await called;
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([existsSync(file('right')), existsSync(file('wrong'))], [true, false]);
  },

  async 'hostile output is harmless'() {
    await visit(page, '#/tools/read_file');
    await page.fill('[data-pointer="/path"]', 'hostile.txt');
    await page.click('[data-action=run]');
    await page.waitForSelector('.call-panel[data-status=completed] .lines');
    const text = await page.textContent('.lines');
    assert.ok(text.includes('<script>') && text.includes('\\u{202e}') && text.includes('\\u{200b}'), text);
    assert.equal(await page.locator('.lines img, .lines script').count(), 0);
    await visit(page, '#/tools/exec_command');
    await page.fill('[data-pointer="/cmd"]', 'cat hostile.txt');
    await page.click('[data-action=run]');
    await page.waitForSelector('.call-panel[data-status=completed] .terminal');
    assert.ok((await page.textContent('.terminal')).includes('<script>'));
    // The standard tools keep no colours; tools of others may.
    const shown = await page.evaluate(async (text) => {
      const { terminal } = await import('/console/ansi.js');
      const element = terminal(text);
      document.body.append(element);
      const found = { red: element.querySelector('.t-fg-1')?.textContent, text: element.textContent, images: element.querySelectorAll('img, script').length };
      element.remove();
      return found;
    }, HOSTILE);
    assert.equal(shown.red, 'red');
    assert.equal(shown.images, 0);
    assert.ok(shown.text.includes('\\u{202e}') && shown.text.includes('\\u{7}') && !shown.text.includes('owned\u0007'), shown.text);
    assert.ok(!(await page.title()).includes('owned'));
    // A long line takes time in proportion, and a line that was written over shows its last state.
    const long = await page.evaluate(async () => {
      const { terminal } = await import('/console/ansi.js');
      return ['x'.repeat(200_000), '10 %\r50 %\r100 %\nnext\r\nlast\r'].map((it) => terminal(it).textContent).map((it) => (it.length > 100 ? it.length : it));
    });
    assert.deepEqual(long, [200_000, '100 %\nnext\nlast\\u{d}']);
    await checkAccess(page, 'terminal');
  },

  async 'a command that failed is a problem'() {
    await page.fill('[data-pointer="/cmd"]', 'ls missing-file');
    await page.click('[data-action=run]');
    await page.waitForSelector('.call-panel[data-status=completed] .state-failed:has-text("Exit 2")');
    await visit(page, '#/calls');
    const row = '.list a.row:has-text("ls missing-file")';
    await page.waitForSelector(`${row} .state-failed:has-text("Exit 2")`);
    await page.click('.segment:has-text("Problems")');
    await page.waitForSelector(row);
    assert.equal(await page.locator('.list a.row:has-text("cat hostile.txt")').count(), 0);
    await page.click('.segment:has-text("All")');
    await visit(page, '#/audit');
    await page.waitForSelector('.audit-row[data-what=ran] .badge.bad:has-text("exit 2")');
    await visit(page, '#/tools/exec_command');
  },

  async 'a running call is cancelled'() {
    await page.fill('[data-pointer="/cmd"]', 'sleep 60');
    await page.click('[data-member=yield_time_ms]');
    await page.fill('[data-pointer="/yield_time_ms"]', '30000');
    await page.click('[data-action=run]');
    await page.waitForSelector('.call-panel [data-action=cancel]');
    await page.click('.call-panel [data-action=cancel]');
    await page.waitForSelector('.call-panel[data-status=aborted]');
  },

  async 'two browsers and another client settle one request'() {
    const other = await openPage(context, `${BASE}/#/inbox`);
    await ready(other);
    await visit(page, '#/inbox');
    const called = callTool('write_file', { path: 'new.txt', content: 'one\n' });
    for (const it of [page, other]) await it.waitForSelector('.approval[data-status=open]');
    await page.waitForTimeout(450);
    await other.click('[data-action=once]');
    await page.waitForSelector('.approval[data-status=gone], .empty');
    assert.equal((await called).status, 200);
    await other.close();
  },

  async 'the options of a question are seen at once, and no answer is empty by accident'() {
    const options = [{ label: 'SQLite', description: 'One file.\nNo server.' }, { label: 'Postgres', description: 'A server: for many writers.' }];
    const question = { question: 'Which database?', options, recommendation: 'SQLite', context: 'There is one user now.' };
    const called = callTool('request_decision', question);
    await page.waitForSelector('.question[data-status=open]');
    assert.deepEqual(await page.locator('.option').allTextContents(), ['SQLite (recommended)One file.\nNo server.', 'PostgresA server: for many writers.']);
    assert.deepEqual([await page.locator('.option [type=radio]').count(), await page.locator('.option :checked').count()], [2, 0]);
    assert.equal(await page.textContent('.question-text'), 'There is one user now.');
    assert.ok(await page.isVisible('.question [data-pointer="/other"]'), 'the free answer is shown');
    await page.click('[data-action=accept]');
    await page.waitForSelector('.question[data-status=open] [role=alert]:has-text("nothing is chosen or written")');
    // A choice can be taken back, and one with a text is an answer as well.
    await page.click('.option:has-text("Postgres")');
    assert.equal(await page.textContent('.question [role=alert]'), '');
    await checkAccess(page, 'options');
    await page.click('[data-action=clear]');
    assert.equal(await page.locator('.option :checked').count(), 0);
    await page.click('.option:has-text("SQLite")');
    await page.fill('.question [data-pointer="/other"]', 'for now');
    await takePicture(page, 'question');
    await page.keyboard.press('Control+Enter');
    const { status, body } = await called;
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([body.structured.selected, body.structured.other], [['SQLite'], 'for now']);

    const several = callTool('request_decision', { question: 'Which ones?', options, selection_mode: 'multiple', max_selections: 1 });
    await page.waitForSelector('.option [type=checkbox]');
    for (const box of await page.locator('.option').all()) await box.click();
    await page.click('[data-action=accept]');
    await page.waitForSelector('.question .fault-summary:has-text("at most 1")');
    await page.click('.option:has-text("SQLite")');
    await page.click('[data-action=accept]');
    assert.deepEqual((await several).body.structured.selected, ['Postgres']);
    await page.waitForSelector('text=Nothing waits');
  },

  async 'a question is answered in the browser'() {
    const called = callTool('request_decision', { question: 'Which colour?', options: [{ label: 'Red', description: 'Warm' }, { label: 'Blue' }], allow_other: false });
    await page.waitForSelector('.question[data-status=open]');
    await checkAccess(page, 'question');
    await page.click('.option:has-text("Blue")');
    // The user goes elsewhere just when the answer arrives, and stays there.
    await page.evaluate(() => {
      const send = globalThis.fetch;
      globalThis.fetch = async (address, options) => {
        const response = await send(address, options);
        if (/^\/v1\/questions\/./.test(address)) {
          location.hash = '#/calls';
          globalThis.fetch = send;
        }
        return response;
      };
    });
    await page.click('[data-action=accept]');
    const { status, body } = await called;
    assert.equal(status, 200, JSON.stringify(body));
    assert.match(body.text, /Blue/);
    await page.waitForSelector('main[data-view=calls]');
    assert.equal(new URL(page.url()).hash, '#/calls');
  },

  async 'the timeline shows the calls of every client'() {
    await visit(page, '#/calls');
    await page.click('.list a.row[data-status=completed]:has-text("Edit")');
    await page.waitForSelector('.call-panel .diff');
    for (const status of ['completed', 'denied', 'aborted']) await page.waitForSelector(`.list a.row[data-status=${status}]`);
    await page.fill('input[type=search]', 'touch');
    await page.waitForFunction(() => document.querySelectorAll('.list a.row').length === 2);
    await page.fill('input[type=search]', '');
    await takePicture(page, 'calls');
    await page.click('text=Use these arguments');
    await page.waitForSelector('article[data-tool=edit_file]');
    assert.equal(await page.inputValue('[data-pointer="/edits/1/new_string"]'), 'a.wrapping_add(b)');
  },

  async 'a grant is made and revoked'() {
    await visit(page, '#/tools/write_file');
    await page.fill('.json-input', '{"path": "log.txt", "content": "1"}');
    await page.click('[data-action=run]');
    await page.click('text=Decide in the inbox');
    await page.waitForSelector('.approval[data-status=open]');
    await page.waitForTimeout(450);
    // The first press shows the patterns, the second one grants them.
    await page.keyboard.press('Shift+S');
    await page.waitForSelector('.scopes details[open]');
    assert.equal(await page.getAttribute('.approval', 'data-status'), 'open');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'patterns');
    await page.keyboard.press('Shift+S');
    await page.waitForSelector('text=Nothing waits');
    await visit(page, '#/permissions');
    await page.waitForSelector('tr[data-grant]:has-text("log.txt")');
    assert.ok(await page.locator('text=exec_command(rm *)').count(), 'the rule of the command line');
    await checkAccess(page, 'permissions');
    await takePicture(page, 'permissions');
    await page.click('tr[data-grant] button');
    await page.waitForSelector('text=Nothing is granted');
  },

  async 'the audit log is filtered'() {
    await visit(page, '#/audit');
    await page.waitForSelector('.audit-row');
    await takePicture(page, 'audit');
    await page.selectOption('select[aria-label=Decision]', 'deny');
    await page.waitForFunction(() => { const rows = [...document.querySelectorAll('.audit-row')]; return rows.length && rows.every((it) => it.dataset.decision === 'deny'); });
    await page.waitForSelector('text=use the notes folder');
    await checkAccess(page, 'audit');
    await visit(page, '#/servers');
    await page.waitForSelector('.page-content[data-status=ready]');
    await checkAccess(page, 'servers');
  },

  async 'a connection that was lost is made again, and nothing is missed'() {
    await visit(page, '#/inbox');
    relay.cut();
    const called = callTool('write_file', { path: 'offline.txt', content: 'x' });
    await page.waitForSelector('[data-part=connection][data-status=waiting]');
    relay.isOpen = true;
    await live(page);
    await page.waitForSelector('.approval[data-status=open]');
    approvalOf = called;
  },

  async 'a list that is late or fails hides no request'() {
    assert.equal((await page.locator('.list a.row').count()), 1);
    const [held, fetched] = [signal(), signal()];
    let attempts = 0;
    await page.route('**/v1/approvals', async (route) => {
      attempts += 1;
      if (attempts === 1) return route.abort();
      const response = await route.fetch();
      fetched.send();
      await held.wait;
      return route.fulfill({ response });
    });
    relay.cut();
    await page.waitForSelector('[data-part=connection][data-status=waiting]');
    relay.isOpen = true;
    await live(page);
    await Promise.race([fetched.wait, page.waitForTimeout(60_000).then(() => assert.fail('a failed list is not read again'))]);
    // The list is read, and its response is on the way, when another request is asked.
    const called = callTool('exec_command', { cmd: 'touch late' });
    await page.waitForFunction(() => document.querySelectorAll('.list a.row').length === 2);
    const settled = page.waitForResponse('**/v1/approvals');
    held.send();
    await settled;
    await page.waitForTimeout(100);
    assert.equal(await page.locator('.list a.row').count(), 2);
    await page.unroute('**/v1/approvals');
    await page.click('.list a.row >> nth=1');
    await page.waitForSelector('.approval[data-status=open] .command-block:has-text("touch late")');
    await page.waitForTimeout(450);
    await page.click('[data-action=once]');
    assert.equal((await called).status, 200);
    await page.waitForSelector('.approval[data-status=open]');
  },

  async 'the keyboard alone is enough'() {
    await page.waitForTimeout(450);
    await page.locator('body').press('Shift+R');
    await page.keyboard.type('not now');
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.waitForSelector('dialog[open]');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Shift+A');
    assert.equal((await approvalOf).status, 200);
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await page.waitForSelector('main[data-view=tools]');
    await page.keyboard.press('/');
    await page.keyboard.type('read_file');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForSelector('article[data-tool=read_file]');
    for (let presses = 0; presses < 60; presses += 1) {
      if (await page.evaluate(() => document.activeElement?.dataset.pointer === '/path')) break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.type('README.md');
    for (let presses = 0; presses < 60; presses += 1) {
      if (await page.evaluate(() => document.activeElement?.dataset.action === 'run')) break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    await page.waitForSelector('.call-panel[data-status=completed] .lines');
  },

  async 'narrow and dark pages work as well'() {
    const called = callTool('edit_file', { path: 'README.md', old_string: 'small', new_string: 'tiny' });
    await page.setViewportSize({ width: 390, height: 800 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await visit(page, '#/inbox');
    await page.click('.list a.row');
    await page.waitForSelector('.approval[data-status=open]');
    await checkAccess(page, 'narrow and dark');
    await takePicture(page, 'narrow-dark');
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `the page is ${width} wide`);
    for (const size of [390, 320]) {
      await page.setViewportSize({ width: size, height: 800 });
      const edges = await page.evaluate(() => [...document.querySelectorAll('nav a > span:not(.count)')].flatMap((it) => [it.getBoundingClientRect().left, it.getBoundingClientRect().right]));
      assert.deepEqual(edges, edges.toSorted((a, b) => a - b), `labels run into each other at ${size}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= size);
    }
    await page.setViewportSize({ width: 390, height: 800 });
    // Theme, shortcuts and signing out are behind one button.
    const buttons = ['Theme: auto', 'Keyboard shortcuts', 'Sign out'].map((it) => page.locator(`.foot-buttons [aria-label="${it}"]`));
    for (const it of buttons) assert.equal(await it.isVisible(), false);
    await page.click('[aria-label=More]');
    for (const it of buttons) assert.ok(await it.isVisible());
    assert.equal(await page.textContent('.foot-note'), 'Live');
    await checkAccess(page, 'the buttons of narrow pages');
    await page.click('[aria-label="Theme: auto"]');
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
    // One press leads to dark, the next one back to the system's.
    for (const theme of ['light', 'dark']) await page.click(`[aria-label="Theme: ${theme}"]`);
    await page.keyboard.press('Escape');
    for (const it of buttons.slice(1)) assert.equal(await it.isVisible(), false);
    await page.waitForTimeout(450);
    await page.click('[data-action=once]');
    assert.equal((await called).status, 200);
    for (const view of ['tools', 'calls', 'permissions', 'servers', 'audit']) {
      await visit(page, `#/${view}`);
      await page.waitForSelector(`main[data-view=${view}]`);
      await checkAccess(page, `${view}, narrow and dark`);
    }
  },

  async 'signing out ends it'() {
    await page.setViewportSize({ width: 1360, height: 860 });
    const second = await openPage(context, `${BASE}/#/tools`);
    await ready(second);
    await page.click('[aria-label="Sign out"]');
    await page.waitForSelector('#app[data-status=signed-out]');
    relay.cut();
    relay.isOpen = true;
    await second.waitForSelector('.banner:not([hidden])');
    assert.deepEqual(problems, []);
  },
};

let failed = false;
for (const [name, step] of Object.entries(steps)) {
  const started = Date.now();
  try {
    await step();
    console.log(`ok ${name} (${Date.now() - started} ms)`);
  } catch (error) {
    failed = true;
    console.error(`FAILED ${name}\n${error.stack}\n${problems.join('\n')}`);
    await page?.screenshot({ path: 'failed.png' }).catch(() => {});
    break;
  }
}
await browser.close();
console.log(failed ? 'console: failed, see failed.png' : `console: ${Object.keys(steps).length} steps hold`);
// Calls that still wait would keep the process alive.
process.exit(failed ? 1 : 0);
