// @modelcontextprotocol/sdk (v1): revisions up to 2025-11-25, over Streamable HTTP and HTTP+SSE.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { converse, patience, surviveCut, text, wait } from './conversation.mjs';

const [url, cut, modules] = process.argv.slice(2);
const require = createRequire(modules + '/');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { SSEClientTransport } = require('@modelcontextprotocol/sdk/client/sse.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');

async function connect(transport) {
  const client = new Client({ name: 'pykeep-test', version: '1' });
  await client.connect(transport);
  return client;
}

const runner = (client, session = {}) => (code, options) =>
  client.callTool({ name: 'run_python', arguments: { code, wait, ...session } }, undefined, { ...patience, ...options });

// ---- Streamable HTTP

let transport = new StreamableHTTPClientTransport(new URL(url + '/mcp'));
let client = await connect(transport);
assert.equal(client.getServerVersion().name, 'pykeep');
assert.equal((await client.listTools()).tools[0].name, 'run_python');
await converse(runner(client));
await surviveCut(runner(client), cut);

const { sessionId } = transport;
await client.close(); // without DELETE: as a client does that is restarted
transport = new StreamableHTTPClientTransport(new URL(url + '/mcp'), { sessionId });
client = await connect(transport);
assert.equal(text(await runner(client)('kept')), "'kept still'");
await transport.terminateSession();
await client.close();

// ---- HTTP+SSE: a connection is a session; its Python is found again by its handle

client = await connect(new SSEClientTransport(new URL(url + '/sse')));
await converse(runner(client));
const { session } = (await runner(client)('1'))._meta['io.pykeep/execution'];
await client.close();
client = await connect(new SSEClientTransport(new URL(url + '/sse')));
assert.equal(text(await runner(client, { session })('kept')), "'kept still'");
await client.close();
