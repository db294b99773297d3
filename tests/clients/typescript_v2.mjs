// @modelcontextprotocol/client (v2): both eras over Streamable HTTP.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { converse, patience, surviveCut, text, wait } from './conversation.mjs';

const [url, cut, modules] = process.argv.slice(2);
const require = createRequire(modules + '/');
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');

async function connect(mode, options) {
  const client = new Client({ name: 'pykeep-test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url + '/mcp'), options));
  return client;
}

const runner = (client, session = {}) => (code, options) =>
  client.callTool({ name: 'run_python', arguments: { code, wait, ...session } }, { ...patience, ...options });

// ---- legacy: the session is the transport's

let client = await connect('legacy');
assert.equal((await client.listTools()).tools[0].name, 'run_python');
await converse(runner(client));
await surviveCut(runner(client), cut);
await client.close();

// ---- modern: no handshake and no session; Python is found by its handle, from any connection

for (const mode of ['auto', { pin: '2026-07-28' }]) {
  client = await connect(mode);
  assert.equal((await client.listTools()).tools[0].name, 'run_python');
  const { session } = (await runner(client)('1'))._meta['io.pykeep/execution'];
  if (mode === 'auto') await converse(runner(client, { session }));
  else await runner(client, { session })("kept = 'kept still'");
  await fetch(cut);
  await sleep(1500); // or it would send on a connection whose end it has not seen yet
  assert.equal(text(await runner(client, { session })('kept')), "'kept still'");
  await client.close();
  client = await connect(mode);
  assert.equal(text(await runner(client, { session })('kept')), "'kept still'");
  await client.close();
}
