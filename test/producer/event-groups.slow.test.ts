import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount } from '../ledger/support/test-account.js';
import { testRedisUrl } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from '../worker/support/close-after-test.js';

const PROGRAM = fileURLToPath(new URL('support/consume-events.mjs', import.meta.url));
const PAYOUTS = 2_000;
const KILLS = 6;

/** @param onLine - gets each event that the process has handled */
function startConsumer(platformId: number, consumer: string, onLine: (line: string) => void) {
  findBuiltProgram();
  const child = spawn(process.execPath, [PROGRAM, String(platformId), consumer], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], REDIS_URL: testRedisUrl() },
  });
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(onLine);
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  afterTest(kill);
  return kill;
}

it('a group whose consumers are killed again and again handles each event, in order, and repeats only the one in hand', async () => {
  const { ledger, platformId } = closeAfterTest(openTestAccount());
  const payoutIds = Array.from({ length: PAYOUTS }, (_, index) => `p-${index}`);
  await ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
  for (let at = 0; at < PAYOUTS; at += 200) {
    const some = payoutIds.slice(at, at + 200);
    await Promise.all(some.map(async (payoutId) => ledger.change({ payoutId, from: 'queued', to: 'cancelled' })));
  }
  const [handled, first]: [string[], string[]] = [[], []];
  const seen = new Set<string>();
  const note = (line: string) => {
    handled.push(line);
    if (!seen.has(line)) first.push(line);
    seen.add(line);
  };
  let kills = 0;
  let kill = startConsumer(platformId, 'one-0', note);
  // The other waits until no heartbeat of the first is seen, and so on.
  for (; kills < KILLS; kills += 1) {
    const from = seen.size;
    await until('some were handled', () => seen.size > from + 50, 60_000);
    const next = startConsumer(platformId, `one-${kills + 1}`, note);
    await kill();
    kill = next;
  }
  await until('all were handled', () => seen.size === 2 * PAYOUTS, 60_000);
  await kill();
  const idOf = (line: string) => (line.split(' ')[0] ?? '').split('-').map(Number);
  const inOrder = first.toSorted((one, other) => {
    const [[oneMs = 0, oneSeq = 0], [otherMs = 0, otherSeq = 0]] = [idOf(one), idOf(other)];
    return oneMs - otherMs || oneSeq - otherSeq;
  });
  expect(first).toEqual(inOrder);
  for (const payoutId of payoutIds) expect(first.filter((line) => line.split(' ')[1] === payoutId)).toHaveLength(2);
  // What was handled, but not yet told when the process was killed.
  expect(handled.length - first.length).toBeLessThanOrEqual(kills);
});
