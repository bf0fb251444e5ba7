// What a client of the TypeScript SDKs sees of the server, over pipes and HTTP. Prints a line
// for each way of connecting; what is wrong is an exception.
import assert from 'node:assert/strict';
import { setTimeout as rest } from 'node:timers/promises';
import * as two from '@modelcontextprotocol/client';
import { StdioClientTransport as TwoOverPipes } from '@modelcontextprotocol/client/stdio';
import { Client as One } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OneOverPipes } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as OneOverHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const { PROGRAM: command, TOOL_SDK_TOKEN, URL: address } = process.env;
const pipes = { command, args: ['stdio'] };
const http = { requestInit: { headers: { Authorization: `Bearer ${TOOL_SDK_TOKEN}` } } };
const info = { name: 'interop', version: '1' };

// `options` says where the call's options stand: the first SDK has a schema before them.
async function check(where, client, transport, options) {
  await client.connect(transport);
  let passed = 0;
  const expect = (what, fact, shown) => {
    assert.ok(fact, `${where}: ${what}: ${JSON.stringify(shown)}`);
    passed += 1;
  };
  const call = (name, args = {}, more = {}) =>
    client.callTool({ name, arguments: args }, ...options(more));

  const names = (await client.listTools()).tools.map(tool => tool.name);
  expect('list', names.includes('interop_add') && names.includes('interop_count'), names);
  const text = await call('test_simple_text');
  expect('text', text.content[0].text.startsWith('This is a simple text'), text);
  const sum = await call('interop_add', { a: 2, b: 3 });
  expect('object', sum.structuredContent.sum === 5, sum);
  const count = await call('interop_count', { to: 3 });
  const value = count.structuredContent.result ?? count.structuredContent;
  expect('list as a result', JSON.stringify(value) === '[1,2,3]', count);
  const media = await call('test_multiple_content_types');
  const sound = await call('test_audio_content');
  const kinds = [...media.content, ...sound.content].map(block => block.type).join();
  expect('media', kinds === 'text,image,resource,audio', kinds);
  const steps = [];
  await call('test_tool_with_progress', {}, { onprogress: step => steps.push(step.progress) });
  expect('progress', steps.join() === '0,50,100', steps);
  const failed = await call('test_error_handling');
  expect('failure', failed.isError && failed.content[0].text.includes('intentionally'), failed);
  const wrong = await call('interop_add', { a: 2, c: 3 });
  expect('wrong arguments', wrong.isError && wrong.content[0].text.includes('`c`'), wrong);
  await assert.rejects(call('no_such_tool'), { code: -32602 });
  passed += 1;

  const cancelled = async () => Number((await call('interop_cancelled')).content[0].text);
  const before = await cancelled();
  const stop = new AbortController();
  const waiting = call('interop_wait', {}, { signal: stop.signal }).catch(() => {});
  await rest(500);
  stop.abort();
  await waiting;
  let after = await cancelled();
  for (let n = 0; n < 50 && after === before; n += 1) {
    await rest(100);
    after = await cancelled();
  }
  expect('cancelled call', after === before + 1, [before, after]);
  await client.close();
  console.log(`interop: ${where}: ${passed} of 10`);
}

// The tasks of 2025-11-25, which only the first SDK has.
async function checkTasks(where, transport) {
  const client = new One(info, { capabilities: { elicitation: {} } });
  const answer = { action: 'accept', content: { confirm: true } };
  client.setRequestHandler(ElicitRequestSchema, async () => answer);
  await client.connect(transport);
  await client.listTools();
  const { tasks } = client.experimental;
  const begin = (name, args) =>
    tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { task: { ttl: 60000 } });
  const run = async (name, args) => {
    const seen = [];
    for await (const message of begin(name, args)) {
      seen.push(message.task?.status ?? message.result?.content[0].text ?? message.type);
    }
    return seen;
  };
  const slow = await run('slow_compute', { seconds: 1 });
  assert.equal(slow[0], 'working', where);
  assert.equal(slow.at(-1), 'it took 1 s', where);
  const asked = await run('confirm_delete', { filename: 'a' });
  assert.ok(asked.includes('input_required') && asked.at(-1).includes('accept'), `${where}: ${asked}`);
  const failed = await run('failing_job', {});
  assert.ok(failed.includes('failed') && failed.at(-1) === 'error', `${where}: ${failed}`);
  const begun = begin('slow_compute', { seconds: 60 });
  const { taskId } = (await begun.next()).value.task;
  assert.equal((await tasks.cancelTask(taskId)).status, 'cancelled', where);
  const listed = (await tasks.listTasks()).tasks.find(task => task.taskId === taskId);
  assert.equal(listed.status, 'cancelled', where);
  await client.close();
  console.log(`interop: ${where}: 4 of 4`);
}

const second = more => [undefined, more];
await check('typescript 1, pipes', new One(info), new OneOverPipes(pipes), second);
await check('typescript 1, http', new One(info), new OneOverHttp(new URL(address), http), second);
await checkTasks('typescript 1 tasks, pipes', new OneOverPipes(pipes));
await checkTasks('typescript 1 tasks, http', new OneOverHttp(new URL(address), http));
for (const mode of ['legacy', 'auto']) {
  const client = () => new two.Client(info, { versionNegotiation: { mode } });
  const first = more => [more];
  await check(`typescript 2 ${mode}, pipes`, client(), new TwoOverPipes(pipes), first);
  const overHttp = new two.StreamableHTTPClientTransport(new URL(address), http);
  await check(`typescript 2 ${mode}, http`, client(), overHttp, first);
}
process.exit(0);
