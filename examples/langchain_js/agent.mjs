// A LangChain agent that thinks in Python: two questions, and between them a restart of everything but the
// session. Run it again: the session is still there.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { createAgent } from 'langchain';
import { firstScript, secondScript } from './script.mjs';

const built = fileURLToPath(new URL('../../build/release/pykeep', import.meta.url));
const pykeep = process.env.PYKEEP_BINARY ?? (existsSync(built) ? built : 'pykeep');

// One answer of the agent, with a pykeep process of its own. `--session` names the Python that it goes on with:
// when the process ends, the variables are put to rest under that name.
async function ask(question, model) {
  const client = new MultiServerMCPClient({
    mcpServers: {
      python: {
        transport: 'stdio',
        command: pykeep,
        args: ['--session', 'langchain-js'],
        env: { ...process.env }, // a server started by the adapter sees little of it otherwise
      },
    },
    afterToolCall: withoutMeta,
  });
  console.log(`\n# ${question}`);
  try {
    const agent = createAgent({ model, tools: await client.getTools() });
    const steps = await agent.stream({ messages: question }, { streamMode: 'updates' });
    for await (const step of steps) Object.values(step).flatMap(({ messages }) => messages ?? []).forEach(show);
  } finally {
    await client.close();
  }
}

// The adapter puts a result's _meta, which is for programs, into the text that the model reads.
const withoutMeta = ({ result: [content] }) => ({
  result: [typeof content === 'string' ? content : content.map(({ meta, ...block }) => block), []],
});

// A message as a person may want to see it: words, code, results, images.
function show(message) {
  const blocks = typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content;
  for (const block of blocks) {
    if (block.type === 'text') console.log(message.type === 'tool' ? indent('< ', block.text) : block.text);
    else console.log(`< (the image, as the model gets it: ${block.image_url.url.slice(0, 22)}…)`);
  }
  for (const call of message.tool_calls ?? []) console.log(indent('> ', call.args.code ?? JSON.stringify(call.args)));
}

const indent = (mark, text) => text.trimEnd().replace(/^/gm, mark);

// MODEL=anthropic:… with `npm install @langchain/anthropic` and its key takes the place of the script.
await ask('How far apart can two neighbouring primes below a million be?', process.env.MODEL ?? firstScript());
await ask('Show me how the gaps are distributed.', process.env.MODEL ?? secondScript());
