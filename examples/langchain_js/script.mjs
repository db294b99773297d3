// What a model would say, for LangChain's fake model. Only the words are made up: each tool call is carried
// out, and what the last message of a script says is read from the results.

import { AIMessage, fakeModel } from 'langchain';

let calls = 0;
const runs = (content, code) =>
  new AIMessage({ content, tool_calls: [{ type: 'tool_call', id: `call-${++calls}`, name: 'run_python', args: { code } }] });

const SIEVE = `limit = 1_000_000
sieve = bytearray([1]) * limit
sieve[:2] = b'\\0\\0'
for n in range(2, int(limit ** 0.5) + 1):
    if sieve[n]:
        sieve[n * n::n] = bytes(len(range(n * n, limit, n)))
primes = [n for n in range(limit) if sieve[n]]
len(primes)`;

const GAPS = `gaps = [after - before for before, after in zip(primes, primes[1:])]
max(gap)`;

const CHART = `import matplotlib.pyplot as plt
plt.hist(gaps, bins=range(0, 116, 2))
plt.yscale('log')
plt.title('Gaps between primes below a million')
plt.xlabel('gap')
plt.ylabel('how often')
plt.show()`;

export const firstScript = () =>
  fakeModel()
    .respond(runs('First the primes.', SIEVE))
    .respond(runs('Now the gaps.', GAPS))
    .respond(runs('A slip of mine; `primes` and `gaps` are still there.', 'max(gaps)'))
    .respond(messages => new AIMessage(`The largest gap is ${messages.at(-1).text}.`));

export const secondScript = () =>
  fakeModel()
    .respond(runs('The gaps are still in memory, so I only draw them.', CHART))
    .respond(messages => new AIMessage(sees(messages.at(-1)) ? 'Every multiple of 6 stands out.' : 'I see no chart.'));

const sees = message => Array.isArray(message.content) && message.content.some(block => block.type === 'image_url');
