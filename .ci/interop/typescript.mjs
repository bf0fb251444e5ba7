// What a client of the TypeScript SDKs sees of the server.
import assert from 'node:assert/strict';
import * as two from '@modelcontextprotocol/client';
import { StdioClientTransport as TwoOverPipes } from '@modelcontextprotocol/client/stdio';
import { Client as One } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OneOverPipes } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as OneOverHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { PROGRAM: command, ROOT, TOOL_SDK_TOKEN, URL: address } = process.env;
const pipes = { command, args: ['--root', ROOT, 'serve', 'mcp'] };
const http = { requestInit: { headers: { Authorization: `Bearer ${TOOL_SDK_TOKEN}` } } };
const info = { name: 'interop', version: '1' };

async function check(name, client, transport) {
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.ok(tools.some(tool => tool.name === 'read_file'), name);
  const read = await client.callTool({ name: 'read_file', arguments: { path: 'Cargo.toml', limit: 1 } });
  assert.ok(!read.isError && read.content[0].text.startsWith('1: [workspace]'), name);
  const wrong = await client.callTool({ name: 'read_file', arguments: { pth: 1 } });
  assert.ok(wrong.isError && wrong.content[0].text.includes('did you mean `path`?'), name);
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }), { code: -32602 });
  await client.close();
  console.log(`interop: ${name} passed`);
}

await check('typescript 1, pipes', new One(info), new OneOverPipes(pipes));
await check('typescript 1, http', new One(info), new OneOverHttp(new URL(address), http));
for (const mode of ['legacy', 'auto']) {
  const client = () => new two.Client(info, { versionNegotiation: { mode } });
  await check(`typescript 2 ${mode}, pipes`, client(), new TwoOverPipes(pipes));
  const overHttp = new two.StreamableHTTPClientTransport(new URL(address), http);
  await check(`typescript 2 ${mode}, http`, client(), overHttp);
}
process.exit(0);
