// pykeep from TypeScript: start it, run Python in one session, send a file in, get a chart and a file out.

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Client, type CallToolResult } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const built = fileURLToPath(new URL('../../build/release/pykeep', import.meta.url));
const command = process.env.PYKEEP_BINARY ?? (existsSync(built) ? built : 'pykeep');

const client = new Client({ name: 'pykeep-example', version: '1' });
// A server that the SDK starts sees HOME, PATH and little else unless it is told more.
await client.connect(new StdioClientTransport({ command, env: process.env as Record<string, string> }));
console.log('connected to', client.getServerVersion()?.name);

// Runs code, prints what comes back, and returns it.
async function python(code: string): Promise<CallToolResult> {
  console.log(code.replace(/^/gm, '> '));
  const result = await client.callTool(
    { name: 'run_python', arguments: { code } },
    { onprogress: ({ message }) => console.log(`  ${message}`) }, // what it printed last, while it runs
  );
  for (const block of result.content) {
    if (block.type === 'text') console.log(block.text);
    if (block.type === 'image') {
      const file = `chart.${block.mimeType.split('/')[1]}`;
      await writeFile(file, Buffer.from(block.data, 'base64'));
      console.log(`(saved as ${file})`);
    }
  }
  return result;
}

// ---- variables stay from call to call; a mistake is a result like any other

const first = await python('squares = [n * n for n in range(10)]\nsum(squares)');
const mistake = await python('squares[10]');
console.log(mistake.isError ? '(an error, and the variables are still there)' : '');

// ---- a file goes in; what a long cell prints can be seen while it runs

await client.callTool({ name: 'upload_file', arguments: { name: 'digits.txt', text: '3\n1\n4\n1\n5\n' } });
await python(`import time
for line in open('digits.txt'):
    print('read', line.strip(), flush=True)
    time.sleep(0.4)`);

// ---- a chart comes out as an image, a file as a resource

await python(`import matplotlib.pyplot as plt
plt.plot(squares, marker='o')
plt.title('Squares')
plt.show()`);
await python("open('squares.json', 'w').write(str(squares))");
const { session } = first._meta!['io.pykeep/execution'] as { session: string };
const { contents } = await client.readResource({ uri: `pykeep://sessions/${session}/files/squares.json` });
console.log('squares.json:', 'text' in contents[0] ? JSON.parse(contents[0].text) : contents[0]);

await client.close();
