// Lets the suite's servers be used by the client whose path is the first argument, once for
// each revision, and compares what passed with what must pass.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

// How many checks pass in each scenario. Some pass when nobody comes, so that a wrong total is
// as bad as a failure.
const EXPECTED = {
  '2025-11-25': {
    'initialize': 1,
    'tools_call': 2,
    'elicitation-sep1034-client-defaults': 5,
    'sse-retry': 3,
    'json-schema-2020-12-preservation': 9,
    'auth/basic-cimd': 15,
    'auth/metadata-default': 20,
    'auth/metadata-var1': 20,
    'auth/metadata-var2': 20,
    'auth/metadata-var3': 20,
    'auth/pre-registration': 16,
    'auth/scope-from-scopes-supported': 16,
    'auth/scope-from-www-authenticate': 16,
    'auth/scope-omitted-when-undefined': 16,
    'auth/scope-retry-limit': 28,
    'auth/scope-step-up': 25,
    'auth/token-endpoint-auth-basic': 21,
    'auth/token-endpoint-auth-none': 21,
    'auth/token-endpoint-auth-post': 21,
  },
  '2026-07-28': {
    'tools_call': 2,
    'request-metadata': 6,
    'sep-2322-client-request-state': 5,
    'http-standard-headers': 3,
    'http-custom-headers': 18,
    'http-invalid-tool-headers': 12,
    'json-schema-ref-no-deref': 1,
    'json-schema-2020-12-preservation': 9,
    'auth/authorization-server-migration': 29,
    'auth/basic-cimd': 13,
    'auth/iss-normalized': 8,
    'auth/iss-not-advertised': 15,
    'auth/iss-supported': 15,
    'auth/iss-supported-missing': 8,
    'auth/iss-unexpected': 8,
    'auth/iss-wrong-issuer': 8,
    'auth/metadata-default': 19,
    'auth/metadata-issuer-mismatch': 3,
    'auth/metadata-var1': 19,
    'auth/metadata-var2': 19,
    'auth/metadata-var3': 19,
    'auth/offline-access-not-supported': 15,
    'auth/offline-access-scope': 13,
    'auth/pre-registration': 14,
    'auth/resource-mismatch': 2,
    'auth/scope-from-scopes-supported': 15,
    'auth/scope-from-www-authenticate': 15,
    'auth/scope-omitted-when-undefined': 15,
    'auth/scope-retry-limit': 31,
    'auth/scope-step-up': 28,
    'auth/token-endpoint-auth-basic': 20,
    'auth/token-endpoint-auth-none': 20,
    'auth/token-endpoint-auth-post': 20,
  },
};

// What is left out: extensions that the suite does not score.
const LEFT_OUT = new Set([
  'client-credentials-basic', 'client-credentials-jwt', 'dpop', 'dpop-nonce',
  'enterprise-managed-authorization', 'wif-jwt-bearer',
].map(name => `auth/${name}`));

// Where the client must not connect: it refuses what is wrong, or gives up in time.
const REFUSED = new Set([
  'iss-normalized', 'iss-supported-missing', 'iss-unexpected', 'iss-wrong-issuer',
  'metadata-issuer-mismatch', 'resource-mismatch', 'scope-retry-limit',
].map(name => `auth/${name}`));

const [program, suite, out] = process.argv.slice(2);

function run(...args) {
  // All clients run at once, so on a busy machine one needs more than the 30 s that the suite gives it.
  const limit = ['--timeout', '300000'];
  const running = spawn(process.execPath, [suite, 'client', ...args, ...limit], { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  running.stdout.on('data', part => (log += part));
  running.stderr.on('data', part => (log += part));
  return new Promise(ended => running.on('exit', code => ended({ code, log })));
}

// The folders of the scenarios below `folder`, by name; the suite adds the time to each.
function scenarios(folder) {
  const files = readdirSync(folder, { recursive: true }).filter(file => path.basename(file) === 'checks.json');
  return new Map(files.map(file => {
    const place = path.dirname(file);
    return [place.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, ''), path.join(folder, place)];
  }));
}

// Whether the client was there when the suite looked: it connected, or said why it did not.
function attended(folder, name) {
  const said = path.join(folder, 'stderr.txt');
  const words = existsSync(said) ? readFileSync(said, 'utf8') : '';
  return REFUSED.has(name) ? /^refused: ./m.test(words) : /^connected: \d+ tools$/m.test(words);
}

let wrong = 0;
function fault(words) {
  console.log(`FAILED ${words}`);
  wrong += 1;
}

// Nothing that passes means anything unless it fails when nobody comes.
const nobody = path.join(out, 'nobody');
rmSync(nobody, { recursive: true, force: true });
const { code } = await run('--command', 'false', '--scenario', 'tools_call', '-o', nobody);
if (code === 0) fault('the suite is content with a client that never comes');

for (const [revision, expected] of Object.entries(EXPECTED)) {
  const folder = path.join(out, revision);
  rmSync(folder, { recursive: true, force: true });
  const before = wrong;
  const { log } = await run('--command', program, '--requirements', revision, '-o', folder);
  const found = scenarios(folder);
  let total = 0;
  for (const [name, count] of Object.entries(expected)) {
    const place = found.get(name);
    if (!place) {
      fault(`${revision} ${name}: it was not run`);
      continue;
    }
    const checks = JSON.parse(readFileSync(path.join(place, 'checks.json'), 'utf8'));
    const passed = checks.filter(check => check.status === 'SUCCESS').length;
    total += passed;
    if (!attended(place, name)) fault(`${revision} ${name}: the client never came`);
    if (passed !== count) fault(`${revision} ${name}: ${passed} of ${count} checks passed`);
    for (const { id, status, errorMessage } of checks) {
      if (status === 'FAILURE' || status === 'WARNING') fault(`${revision} ${name} ${id}: ${errorMessage}`);
    }
  }
  for (const name of found.keys()) {
    if (!(name in expected) && !LEFT_OUT.has(name)) fault(`${revision} ${name}: nobody said how many checks pass`);
  }
  const most = Object.values(expected).reduce((sum, count) => sum + count, 0);
  const left = [...found.keys()].filter(name => LEFT_OUT.has(name)).length;
  console.log(`conformance of the client ${revision}: ${total} of ${most} checks passed in ${Object.keys(expected).length} scenarios; ${left} left out`);
  if (wrong !== before) console.log(log);
}
process.exit(wrong ? 1 : 0);
