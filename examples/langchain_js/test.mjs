// Runs the program as its README says, twice; the second run finds the first one's session.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

const run = () => execFileSync(process.execPath, ['agent.mjs'], { encoding: 'utf8', timeout: 200_000 });

const said = run();
assert.match(said, /^< 78498$/m, 'the primes were counted');
assert.match(said, /< .*NameError: name 'gap' is not defined/, 'the mistake came back as a traceback');
assert.match(said, /The largest gap is 114\./, 'and could be corrected in the same Python');
assert.doesNotMatch(said, /io\.pykeep/, 'the model is not shown what is for programs');

const [, afterRestart] = said.split('# Show me how the gaps are distributed.');
if (afterRestart.includes("No module named 'matplotlib'")) {
  console.log('skipped: the chart: the Python environment has no matplotlib');
} else {
  assert.match(afterRestart, /image "Gaps between primes below a million"/, 'variables were kept over the restart');
  assert.match(afterRestart, /data:image\/png;base64/, 'the chart came as an image');
  assert.match(afterRestart, /Every multiple of 6 stands out\./, 'and the model was given it');
}

assert.match(run(), /variables are kept/, 'the second run went on in the same session');
