// What scripts of web sites see of the server, in a browser: all of it from a site that was let
// in, and nothing from another one. Prints a line for each site; what is wrong is an exception.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import chromium from '@sparticuz/chromium';
import puppeteer from 'puppeteer-core';

const { PROGRAM, TOOL_SDK_TOKEN } = process.env;

// A site with an empty page, at an address of its own.
async function site() {
  const server = createServer((_, answer) => {
    answer.setHeader('Content-Type', 'text/html');
    answer.end('<!doctype html><title>site</title>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { place: `127.0.0.1:${server.address().port}`, server };
}

// Everything below runs in the page.
async function script(address, token) {
  const seen = {};
  const send = async (message, headers = {}, more = {}) => fetch(address, {
    method: 'POST',
    headers: {
      Accept: 'application/json, text/event-stream',
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    ...more,
  });
  // The messages of an answer, each as soon as it comes.
  const messages = async function* (answer) {
    if (answer.headers.get('content-type').startsWith('application/json')) {
      yield await answer.json();
      return;
    }
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ''; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      const events = text.split('\n\n');
      text = events.pop();
      for (const event of events) {
        const data = event.split('\n').find(line => line.startsWith('data: {'));
        if (data) yield JSON.parse(data.slice(6));
      }
    }
  };
  const last = async answer => {
    let found;
    for await (const message of messages(answer)) found = message;
    return found;
  };
  const attempt = async (what, doing) => {
    try {
      seen[what] = await doing();
    } catch (error) {
      seen[what] = `${error.name}`;
    }
  };

  let session = {};
  await attempt('initialize', async () => {
    const hello = await send({
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'page', version: '1' },
      },
    });
    session = { 'Mcp-Session-Id': hello.headers.get('mcp-session-id') };
    return (await last(hello)).result.serverInfo.name;
  });
  const version = { 'MCP-Protocol-Version': '2025-11-25' };
  await attempt('session', () => typeof session['Mcp-Session-Id']);
  await attempt('initialized', async () =>
    (await send({ method: 'notifications/initialized' }, session)).status);
  await attempt('list', async () => {
    const listed = await last(await send({ id: 2, method: 'tools/list' }, { ...session, ...version }));
    return listed.result.tools.some(tool => tool.name === 'interop_add');
  });
  await attempt('call', async () => {
    const params = { name: 'interop_add', arguments: { a: 2, b: 3 } };
    const called = await send({ id: 3, method: 'tools/call', params }, { ...session, ...version });
    return (await last(called)).result.structuredContent.sum;
  });
  await attempt('stream', async () => {
    const params = {
      name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'p' },
    };
    const steps = [];
    const called = await send({ id: 4, method: 'tools/call', params }, { ...session, ...version });
    for await (const message of messages(called)) {
      if (message.method === 'notifications/progress') steps.push(message.params.progress);
    }
    return `${called.headers.get('content-type')} ${steps}`;
  });
  await attempt('listen', async () => {
    const stop = new AbortController();
    const headers = {
      Accept: 'text/event-stream', Authorization: `Bearer ${token}`, ...session, ...version,
      'Last-Event-ID': '0',
    };
    const { status } = await fetch(address, { headers, signal: stop.signal });
    stop.abort();
    return status;
  });
  await attempt('end', async () => {
    const headers = { Authorization: `Bearer ${token}`, ...session };
    return (await fetch(address, { method: 'DELETE', headers })).status;
  });
  await attempt('modern', async () => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/clientInfo': { name: 'page', version: '1' },
    };
    const params = { name: 'interop_add', arguments: { a: 4, b: 5 }, _meta };
    const headers = {
      'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'interop_add',
    };
    const called = await send({ id: 5, method: 'tools/call', params }, headers);
    return (await last(called)).result.structuredContent.sum;
  });
  await attempt('no token', async () => {
    const refused = await send({ id: 6, method: 'ping' }, { Authorization: 'Bearer wrong' });
    return `${refused.status} ${refused.headers.get('www-authenticate')}`;
  });
  await attempt('another header', async () =>
    (await send({ id: 7, method: 'ping' }, { 'X-Other': '1' })).status);
  await attempt('cookies', async () =>
    (await send({ id: 8, method: 'ping' }, {}, { credentials: 'include' })).status);
  return seen;
}

const sites = { known: await site(), strange: await site() };
const server = spawn(PROGRAM, [], {
  env: { ...process.env, CONFORMANCE_PROXY: sites.known.place },
  stdio: ['ignore', 'ignore', 'pipe'],
});
const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  headless: 'shell',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  let address;
  for await (const line of createInterface(server.stderr)) {
    address = line.match(/^listening on (.*)$/)?.[1];
    if (address) break;
  }
  const visit = async place => {
    const page = await browser.newPage();
    await page.goto(`http://${place}/`);
    return page.evaluate(script, address, TOOL_SDK_TOKEN);
  };
  const kept = 'TypeError';
  const expected = {
    known: {
      initialize: 'conformance', session: 'string', initialized: 202, list: true, call: 5,
      stream: 'text/event-stream 0,50,100', listen: 200, end: 204, modern: 9,
      'no token': '401 Bearer', 'another header': kept, cookies: kept,
    },
  };
  expected.strange = Object.fromEntries(Object.keys(expected.known).map(what => [what, kept]));
  expected.strange.session = 'undefined';
  for (const [which, { place }] of Object.entries(sites)) {
    const seen = await visit(place);
    let passed = 0;
    for (const [what, wanted] of Object.entries(expected[which])) {
      assert.deepEqual(seen[what], wanted, `browser, ${which} site: ${what}`);
      passed += 1;
    }
    console.log(`interop: browser, ${which} site: ${passed} of ${passed}`);
  }
} finally {
  await browser.close();
  server.kill();
  for (const { server } of Object.values(sites)) server.close();
}
