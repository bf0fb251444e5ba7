// Runs whole conversations of `chat --print` against a mock of the providers' APIs: calls, parallel
// calls, wrong arguments, images, overload, broken streams. Requests pass through a proxy that keeps
// their bodies for `check_requests.py`. `CUTS` names the bytes after which a stream breaks.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { LLMock } from '@copilotkit/aimock';

const [program, out] = process.argv.slice(2);
rmSync(out, { recursive: true, force: true });
mkdirSync(path.join(out, 'requests'), { recursive: true });

const APIS = {
  'openai-chat': '/v1',
  openai: '/v1',
  anthropic: '',
  gemini: '',
  'gemini-generate': '',
};

const mock = new LLMock({ port: 0, strict: true });
const results = request => request.messages.filter(message => message.role === 'tool');
const asks = (words, count) => request =>
  request.messages.some(it => it.role === 'user' && JSON.stringify(it.content).includes(words)) &&
  results(request).length === count;
const call = (name, args) => ({ name, arguments: JSON.stringify(args) });
const on = (words, count, response) => mock.on({ predicate: asks(words, count) }, response);

on('one call', 0, { toolCalls: [call('read_file', { path: 'notes.txt' })] });
on('one call', 1, { content: 'It says helo.' });
on('two calls', 0, {
  content: 'Let me look.',
  toolCalls: [call('read_file', { path: 'notes.txt' }), call('list_dir', { path: '.' })],
});
on('two calls', 2, { content: 'Both were read.' });
on('wrong call', 0, { toolCalls: [call('read_file', { pth: 'notes.txt' })] });
on('wrong call', 1, { toolCalls: [call('read_file', { path: 'notes.txt' })] });
on('wrong call', 2, { content: 'It went well then.' });
on('unknown call', 0, { toolCalls: [call('read_fil', { path: 'notes.txt' })] });
on('unknown call', 1, { content: 'There is no such tool.' });
on('an edit', 0, {
  toolCalls: [call('edit_file', { path: 'notes.txt', old_string: 'helo', new_string: 'hello' })],
});
on('an edit', 1, { content: 'It is changed.' });
on('a picture', 0, { toolCalls: [call('read_file', { path: 'dot.png' })] });
on('a picture', 1, { content: 'A dot.' });
await mock.start();

// What the next requests meet: a status, or a connection that breaks after so many bytes.
const troubles = [];
let requests = 0;
let api = '';
const proxy = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', chunk => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    writeFileSync(path.join(out, 'requests', `${api}-${++requests}.json`), body);
    const trouble = troubles.shift();
    if (trouble?.status) {
      response.writeHead(trouble.status, trouble.headers ?? {});
      response.end(trouble.body ?? '');
      return;
    }
    const { hostname, port } = new URL(mock.url);
    const { method, url } = request;
    const headers = { ...request.headers, host: `${hostname}:${port}` };
    const onward = http.request({ hostname, port, method, path: url, headers }, answer => {
      response.writeHead(answer.statusCode, answer.headers);
      let sent = 0;
      answer.on('data', chunk => {
        const left = (trouble?.bytes ?? Infinity) - sent;
        sent += chunk.length;
        if (chunk.length <= left) return response.write(chunk);
        response.write(chunk.subarray(0, Math.max(0, left)), () => response.destroy());
      });
      answer.on('end', () => response.end());
    });
    onward.on('error', () => response.destroy());
    onward.end(body);
  });
});
await new Promise(ready => proxy.listen(0, '127.0.0.1', ready));
const here = `http://127.0.0.1:${proxy.address().port}`;

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function chat(prompt, options = ['--yes']) {
  const folder = path.join(out, 'work');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'notes.txt'), 'helo\n');
  writeFileSync(path.join(folder, 'dot.png'), Buffer.from(PNG, 'base64'));
  const args = ['--config', '/dev/null', '--state-dir', path.join(out, 'state'), ...options, 'chat'];
  args.push('--model', `${api}/claude-test`, '--model-url', here + APIS[api]);
  args.push('--print', `Please do this: ${prompt}`, '--output', 'jsonl');
  const keys = { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k', GEMINI_API_KEY: 'k' };
  const child = spawn(program, args, { cwd: folder, env: { ...process.env, ...keys } });
  child.stdin.end();
  let text = '', problems = '';
  child.stdout.on('data', chunk => (text += chunk));
  child.stderr.on('data', chunk => (problems += chunk));
  const code = await new Promise(ended => child.on('close', ended));
  const lines = text.trim().split('\n').map(line => JSON.parse(line));
  const ran = lines.flatMap(it => (it.type === 'user' ? it.message.content : []));
  const notes = readFileSync(path.join(folder, 'notes.txt'), 'utf8');
  return { code, result: lines.at(-1), ran, notes, problems };
}

let loops = 0;
async function check(prompt, expected, options) {
  loops += 1;
  const got = await chat(prompt, options);
  const about = `${api}, ${prompt}: ${JSON.stringify(got)}`;
  assert.equal(got.code, expected.code ?? 0, about);
  assert.equal(got.result.result, expected.result, about);
  assert.deepEqual(got.ran.map(it => it.is_error), expected.errors, about);
  if (expected.notes) assert.equal(got.notes, expected.notes, about);
  return got;
}

for (api of Object.keys(APIS)) {
  await check('one call', { result: 'It says helo.', errors: [false] });
  await check('two calls', { result: 'Both were read.', errors: [false, false] });
  await check('wrong call', { result: 'It went well then.', errors: [true, false] });
  await check('unknown call', { result: 'There is no such tool.', errors: [true] });
  await check('an edit', { result: 'It is changed.', errors: [false], notes: 'hello\n' });
  await check('an edit', { result: 'It is changed.', errors: [true], notes: 'helo\n' }, ['--no-input']);
  await check('a picture', { result: 'A dot.', errors: [false] });

  // Overload passes; a refusal does not.
  troubles.push({ status: 503 }, { status: 429, headers: { 'retry-after-ms': '10' } });
  await check('one call', { result: 'It says helo.', errors: [false] });
  troubles.push({ status: 401, body: '{"error": {"message": "bad key"}}' });
  const refused = await check('one call', { code: 1, result: '', errors: [] });
  assert.match(refused.result.error, /401: bad key/);

  // Wherever the connection breaks, the edit is made once, and each call has a result.
  for (const bytes of (process.env.CUTS ?? '0,200').split(',').map(Number)) {
    troubles.push({ bytes });
    await check('an edit', { result: 'It is changed.', errors: [false], notes: 'hello\n' });
    troubles.push({}, { bytes });
    await check('an edit', { result: 'It is changed.', errors: [false], notes: 'hello\n' });
  }
  troubles.length = 0;
}
console.log(`agent: ${loops} conversations over ${Object.keys(APIS).length} APIs, ${requests} requests`);
proxy.close();
proxy.closeAllConnections();
await mock.stop();
