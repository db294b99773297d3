// What every TypeScript client does with a session, whatever its version, era and transport.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32, inflateSync } from 'node:zlib';

// A PNG whose every chunk is whole, whose pixels inflate and which ends; its width and height.
function sizeOfPng(data) {
  assert.equal(data.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n');
  const kinds = [], pixels = [];
  for (let at = 8; at < data.length; ) {
    const length = data.readUInt32BE(at);
    const kind = data.toString('latin1', at + 4, at + 8);
    assert.equal(data.readUInt32BE(at + 8 + length), crc32(data.subarray(at + 4, at + 8 + length)));
    if (kind === 'IDAT') pixels.push(data.subarray(at + 8, at + 8 + length));
    kinds.push(kind);
    at += 12 + length;
  }
  assert.equal(kinds[0], 'IHDR');
  assert.equal(kinds.at(-1), 'IEND');
  assert.ok(inflateSync(Buffer.concat(pixels)).length > 0);
  return [data.readUInt32BE(16), data.readUInt32BE(20)];
}

export const text = result => result.content.map(block => block.text ?? '').join('');

// For a call: on a busy machine matplotlib's first import takes long.
export const wait = 150; // seconds
export const patience = { timeout: 170_000 }; // the client's own, in milliseconds

// `call(code, options)` runs a cell in one session. Leaves `kept` there.
export async function converse(call) {
  const first = await call("kept = 'kept'");
  assert.ok(!first.isError, text(first));

  const chart = await call('import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()');
  if (chart.isError && text(chart).includes("No module named 'matplotlib'")) {
    console.log('skipped: the chart: the Python environment has no matplotlib');
  } else {
    const images = chart.content.filter(block => block.type === 'image');
    assert.deepEqual(images.map(image => image.mimeType), ['image/png']);
    const [width, height] = sizeOfPng(Buffer.from(images[0].data, 'base64'));
    assert.ok(width > 200 && height > 150);
  }

  const heard = [];
  const onprogress = progress => heard.push(progress);
  const steps = 'import time\nfor step in range(3):\n    print(step, flush=True)\n    time.sleep(1.5)';
  assert.equal(text(await call(steps, { onprogress })), '0\n1\n2\n');
  assert.ok(heard.length > 0, 'no progress came');
  assert.ok(heard.every((one, n) => n === 0 || one.progress > heard[n - 1].progress));

  const stop = new AbortController();
  const sleeping = call("kept = 'kept still'\ntime.sleep(60)\nkept = 'lost'", { signal: stop.signal });
  setTimeout(() => stop.abort('the user pressed stop'), 2500); // it has begun by then
  await assert.rejects(sleeping);
  const started = performance.now();
  assert.equal(text(await call('kept')), "'kept still'");
  assert.ok(performance.now() - started < 30_000, 'the cancelled cell went on');
}

// The connections are cut while a cell runs: its result arrives all the same.
export async function surviveCut(call, cut) {
  const running = call("time.sleep(8)\n'survived'", { onprogress: () => {} });
  await sleep(3000);
  await fetch(cut);
  assert.equal(text(await running), "'survived'");
}
