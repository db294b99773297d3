// Runs the program as its README says.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const said = execFileSync(process.execPath, ['client.ts'], { encoding: 'utf8', timeout: 400_000 });

assert.match(said, /connected to pykeep/);
assert.match(said, /^285$/m, 'the sum of the squares');
assert.match(said, /IndexError: list index out of range/, 'the mistake came back as a traceback');
assert.match(said, /variables are still there/);
assert.match(said, /^ +running, \d+ s: read \d/m, 'progress while the cell ran');
assert.match(said, /squares\.json: \[\s+0, +1, +4/, 'the file came as a resource');
if (said.includes("No module named 'matplotlib'")) {
  console.log('skipped: the chart: the Python environment has no matplotlib');
} else {
  assert.match(said, /image "Squares"/);
  assert.equal(readFileSync('chart.png').subarray(1, 4).toString(), 'PNG');
}
