// Logs `tool-std` in to a server that is `tool-std` as well, at a real authorization server, and
// checks what each party did. The first argument is the program.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

const [program] = process.argv.slice(2);
// So long that a token is accepted when the program that refreshed it calls, on a slow machine as well.
const TOKEN_SECONDS = 10;
const SECRET = 'only-for-this-proof-0123456789abcdef';
const folder = mkdtempSync(path.join(os.tmpdir(), 'oauth-proof-'));
const state = path.join(folder, 'state');
let failures = 0;
let server;
process.on('exit', () => {
  server?.kill();
  rmSync(folder, { recursive: true, force: true });
});

function check(condition, words, details = '') {
  console.log(`${condition ? 'ok    ' : 'FAILED'} ${words}`);
  if (!condition) {
    failures += 1;
    console.log(details);
  }
}

function listen(handler) {
  const listener = http.createServer(handler);
  return new Promise(ready => listener.listen(0, '127.0.0.1', () => ready(listener)));
}

// The authorization server. It agrees to everything that `ada` is asked.
let provider;
const listener = await listen((request, response) => answer(request, response));
const port = listener.address().port;
const issuer = `http://127.0.0.1:${port}`;
const granted = [];
const tokens = { issued: [], revoked: 0 };
provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'by-hand',
      client_secret: SECRET,
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  cookies: { keys: ['only for this proof'] },
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access'],
  ttl: { AccessToken: TOKEN_SECONDS },
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'tools more',
        audience: resource,
        accessTokenTTL: TOKEN_SECONDS,
        accessTokenFormat: 'jwt',
      }),
    },
  },
});
provider.on('access_token.issued', token => tokens.issued.push(token));
provider.on('refresh_token.destroyed', () => (tokens.revoked += 1));
provider.on('grant.revoked', () => (tokens.revoked += 1));
provider.on('server_error', (_, error) => console.log('the authorization server failed:', error));

async function answer(request, response) {
  if (!request.url.startsWith('/interaction/')) return provider.callback()(request, response);
  const { params, prompt, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: 'ada' } });
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  granted.push(params.scope);
  grant.addOIDCScope(`openid ${params.scope}`);
  grant.addResourceScope(params.resource, params.scope);
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

// A browser: cookies and redirects, until the answer of the program.
async function browse(url) {
  const cookies = new Map();
  let page;
  for (let hops = 0; hops < 20; hops += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    page = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const set of page.headers.getSetCookie()) {
      const [name, value] = set.split(';')[0].split('=');
      cookies.set(name, value);
    }
    const to = page.headers.get('location');
    if (!to) break;
    url = new URL(to, url).href;
  }
  return { status: page.status, text: await page.text(), url };
}

// A free port for the server, which its configuration names.
const spare = await listen(() => {});
const serverPort = spare.address().port;
await new Promise(closed => spare.close(closed));
const endpoint = `http://127.0.0.1:${serverPort}/mcp`;

function configure(name, text) {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

async function serve(oauth) {
  if (server) {
    // The next server listens at the same port.
    const ended = new Promise(ready => server.on('exit', ready));
    server.kill();
    await ended;
  }
  const config = configure('server.toml', `[serve.mcp.oauth]\n${oauth}`);
  const root = path.join(folder, 'root');
  mkdirSync(root, { recursive: true });
  const args = ['--config', config, '--state-dir', path.join(folder, 'server-state'), '--root', root];
  server = spawn(program, [...args, 'serve', 'mcp', '--http', `127.0.0.1:${serverPort}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, HOME: folder },
  });
  const lines = createInterface({ input: server.stderr });
  await new Promise((ready, failed) => {
    server.on('exit', code => failed(new Error(`the server ended with ${code}`)));
    lines.on('line', line => line.startsWith('listening') && ready());
  });
  server.removeAllListeners('exit');
}

const config = configure('client.toml', `[mcp.servers.own]\nurl = '${endpoint}'\n`);

// Runs the program as the client; `browser` follows the address that it prints.
function run(args, browser, { config: file = config, secret } = {}) {
  const options = ['--config', file, '--state-dir', state];
  const running = spawn(program, [...options, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: folder, ...(secret && { PROOF_SECRET: secret }) },
  });
  let text = '';
  running.stdout.on('data', part => (text += part));
  createInterface({ input: running.stderr }).on('line', line => {
    text += `${line}\n`;
    const url = /^ {2}(http\S+)$/.exec(line);
    if (url && browser) browser(url[1]);
  });
  return new Promise(ended => running.on('close', code => ended({ code, text })));
}

const credentialsFile = path.join(state, 'mcp', 'credentials.json');
const stored = () => JSON.parse(readFileSync(credentialsFile, 'utf8')).servers[endpoint];
const call = () => run(['--yes', 'call', 'mcp__own__tool_search', JSON.stringify({ query: 'read' })]);
const good = `issuer = '${issuer}'\nresource = '${endpoint}'\ntools_scope = 'tools'\n`;

await serve(good);
const before = await run(['mcp', 'list']);
check(before.text.includes('tool-std mcp login own'), 'a server that requires a login names the command', before.text);
const left = await call();
check(left.code !== 0 && granted.length === 0, 'a call starts no login', left.text);

let page;
const login = await run(['mcp', 'login', 'own', '--no-browser'], url => (page = browse(url)));
page = await page;
check(login.code === 0 && /logged in to own: \d+ tools/.test(login.text), 'a login through the browser', login.text);
check(page?.status === 200 && page.url.startsWith('http://127.0.0.1:'), 'the redirect reaches the program', JSON.stringify(page));
check(granted[0] === 'tools', 'the scope of the challenge is requested', granted.join());
check((statSync(credentialsFile).mode & 0o777) === 0o600, 'the file of tokens is private');
check(stored().issuer === issuer && stored().resource === endpoint, 'tokens are bound to issuer and resource');
const shown = await run(['mcp', 'list']);
check(shown.text.includes('logged in'), '`mcp list` shows the login', shown.text);
const secrets = [stored().access_token, stored().refresh_token];
check(!secrets.some(secret => (login.text + shown.text).includes(secret)), 'no token is printed');
const called = await call();
check(called.code === 0, 'a tool is called with the token (RS256)', called.text);

const first = stored().refresh_token;
await new Promise(later => setTimeout(later, (TOKEN_SECONDS + 1) * 1000));
const refreshed = await Promise.all([call(), call(), call()]);
check(refreshed.every(({ code }) => code === 0), 'three processes at once after the end of the token', refreshed.map(it => it.text).join('\n'));
check(stored().refresh_token !== first, 'the refresh token was rotated and stored');

await serve(good.replace("'tools'", "'more'"));
const narrow = await run(['mcp', 'list']);
check(narrow.text.includes('requires the scopes `more`'), 'a token without the scope is refused, and the scope is named', narrow.text);
const wider = await run(['mcp', 'login', 'own', '--no-browser'], browse);
check(wider.code === 0 && granted.at(-1).split(' ').sort().join() === 'more,tools', 'the login adds the scope to the one before', wider.text + granted.join(' | '));

await serve(good.replace(endpoint, `http://127.0.0.1:${serverPort}`));
const audience = await run(['mcp', 'list']);
check(audience.text.includes('mcp login own'), 'a token for another audience is refused', audience.text);

await serve(good.replace('127.0.0.1', 'localhost'));
const other = await run(['mcp', 'login', 'own', '--no-browser'], browse);
check(other.code !== 0 && other.text.includes('metadata of another issuer'), 'metadata of another issuer is refused', other.text);

await serve(good);
const again = await run(['mcp', 'login', 'own', '--no-browser'], browse);
check(again.code === 0, 'a login at the first server again', again.text);
const revokedBefore = tokens.revoked;
const logout = await run(['mcp', 'logout', 'own']);
check(logout.code === 0 && logout.text.includes('revoked'), 'a logout', logout.text);
check(tokens.revoked > revokedBefore, 'the authorization server revoked the tokens');
check(stored() === undefined, 'nothing is stored afterwards');

const client = `client_id = 'by-hand'\nclient_secret_env = 'PROOF_SECRET'\nissuer = '${issuer}'\n`;
const byHand = configure('by-hand.toml', `[mcp.servers.own]\nurl = '${endpoint}'\n[mcp.servers.own.oauth]\n${client}`);
const wrong = await run(['mcp', 'login', 'own', '--no-browser'], browse, { config: byHand, secret: 'wrong' });
check(wrong.code !== 0 && stored() === undefined, 'a client with a wrong secret gets no token', wrong.text);
const known = await run(['mcp', 'login', 'own', '--no-browser'], browse, { config: byHand, secret: SECRET });
check(known.code === 0, 'a client that was registered by hand logs in', known.text);
check(tokens.issued.at(-1).clientId === 'by-hand', 'the token is that of the client');
check(!(wrong.text + known.text).includes(SECRET), 'its secret is not printed');

listener.close();
listener.closeAllConnections();
process.exit(failures ? 1 : 0);
