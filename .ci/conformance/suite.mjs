// Runs the conformance suite against the server whose path is the first argument, once for
// each revision, and compares what passed with what must pass.
//
// The suite has no way to send a token, so it comes through a proxy that has it.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';

// How many checks pass at each revision. The suite lets some pass when nobody answers, so
// that a wrong total is as bad as a failure. Not among them is what the suite says of several
// streams at once: responses that need no stream are JSON.
const EXPECTED = { '2025-11-25': 83, '2026-07-28': 195 };

const [program, suite, out] = process.argv.slice(2);
const token = randomBytes(32).toString('hex');

const proxy = http.createServer((request, response) => {
  const headers = [...request.rawHeaders, 'Authorization', `Bearer ${token}`];
  const { method, url } = request;
  const onward = http.request({ host: '127.0.0.1', port: target, method, path: url, headers, setHost: false });
  onward.on('response', answer => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    response.flushHeaders();
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  request.pipe(onward);
});
await new Promise(ready => proxy.listen(0, '127.0.0.1', ready));
const here = `127.0.0.1:${proxy.address().port}`;

let server, target;
process.on('exit', () => server?.kill());

async function serve() {
  server = spawn(program, [], {
    env: { ...process.env, TOOL_SDK_TOKEN: token, CONFORMANCE_PROXY: here },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said = createInterface({ input: server.stderr });
  target = await new Promise((found, failed) => {
    server.on('exit', code => failed(new Error(`the server ended with ${code}`)));
    said.on('line', line => {
      const port = /^listening on http:\/\/127\.0\.0\.1:(\d+)\/mcp$/.exec(line);
      if (port) found(Number(port[1]));
    });
  });
}

// Nothing that passes means anything unless somebody answers.
async function alive() {
  const hello = {
    jsonrpc: '2.0', id: 1, method: 'initialize',
    params: {
      protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'probe', version: '1' },
    },
  };
  const answer = await fetch(`http://${here}/mcp`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
    body: JSON.stringify(hello),
  });
  if (!answer.ok || !(await answer.text()).includes('"serverInfo"')) {
    throw new Error(`the server does not answer: ${answer.status}`);
  }
}

function checks(folder) {
  const files = readdirSync(folder, { recursive: true }).filter(file => file.endsWith('checks.json'));
  return files.flatMap(file => {
    const scenario = path.dirname(file);
    return JSON.parse(readFileSync(path.join(folder, file), 'utf8')).map(check => ({ scenario, ...check }));
  });
}

// Warnings are named one by one; there is none today.
function warnings(all) {
  return all.filter(check => check.status === 'WARNING').map(check => `${check.scenario} ${check.id}`);
}

// Says whether everything at this revision is as it must be.
async function conforms(revision, expected) {
  await alive();
  const folder = path.join(out, revision);
  rmSync(folder, { recursive: true, force: true });
  const args = [suite, 'server', '--url', `http://${here}/mcp`, '--requirements', revision, '-o', folder];
  const run = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let log = '';
  run.stdout.on('data', part => (log += part));
  const code = await new Promise(ended => run.on('exit', ended));
  await alive();
  const all = checks(folder);
  const passed = all.filter(check => check.status === 'SUCCESS').length;
  const failed = all.filter(check => check.status === 'FAILURE' || check.status === 'WARNING');
  console.log(`conformance ${revision}: ${passed} of ${expected} checks passed, the suite ended with ${code}`);
  const named = warnings(all);
  if (named.length > 0) console.log(`conformance ${revision}: warnings: ${named.join(', ')}`);
  const scenarios = new Set(all.map(check => check.scenario));
  const failing = new Set(all.filter(check => check.status === 'FAILURE').map(check => check.scenario));
  console.log(`conformance ${revision}: ${scenarios.size - failing.size} of ${scenarios.size} scenarios without a failure`);
  if (passed === expected && code === 0 && named.length === 0) return true;
  for (const { scenario, id, status, errorMessage } of failed) {
    console.log(`${status} ${scenario} ${id}: ${errorMessage}`);
  }
  console.log(log);
  return false;
}

let wrong = false;
await serve();
for (const [revision, expected] of Object.entries(EXPECTED)) {
  wrong = !(await conforms(revision, expected)) || wrong;
}
process.exit(wrong ? 1 : 0);
