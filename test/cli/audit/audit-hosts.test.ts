import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';
import { openWorld, untilSent, untilSettled, type PayoutWorld } from '../../worker/support/payout-world.js';
import { endAllWorkers, type WorkerProcess } from '../../worker/support/worker-process.js';
import { runInProcess } from '../support/in-process.js';

/** Real workers, without keys: while they send, and with journals of their own. */

let world: PayoutWorld;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await endAllWorkers();
  await world.close();
});

const folder = (name: string): string => join(world.dir, name);

async function start(journal: string): Promise<WorkerProcess> {
  const worker = world.startWorker({ journalDir: folder(journal) });
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  return worker;
}

async function verify(
  journal: string,
  ...args: string[]
): Promise<{ code: number | null; report: Record<string, unknown> }> {
  const { code, stdout, stderr } = await runInProcess(['audit', 'verify', '--json', ...args], {
    ...{ REDIS_URL: world.redisUrl, GATEWAY_PLATFORM_ID: String(world.platformId), SEND_JOURNAL_DIR: folder(journal) },
  });
  if (stdout === '') throw new Error(stderr);
  return { code, report: JSON.parse(stdout) as Record<string, unknown> };
}

it('of another host finds what only that has sent, until its journal is named', async () => {
  const first = await start('a');
  await world.enqueue(1, 'A');
  await untilSettled(world, 1);
  first.kill('SIGTERM');
  await first.ended;
  await start('b');
  await world.enqueue(1, 'B');
  await untilSent(world, 2);
  await untilSettled(world, 2);
  const alone = await verify('a');
  expect(alone).toMatchObject({
    code: 5,
    report: {
      findings: [{ payoutId: 'B-1', kind: 'not_in_journal', action: expect.stringContaining('--journal') }],
      ledger: { otherJournals: [expect.stringMatching(/^[0-9a-f]{12}$/)] },
    },
  });
  const both = await verify('a', '--journal', folder('b'));
  expect(both).toMatchObject({ code: 0, report: { findings: [], ledger: { sends: 2, otherJournals: [] } } });
  expect(both.report['others']).toMatchObject([{ sends: 1, faults: [] }]);
  // What was sent before this journal began is not expected in it.
  expect(await verify('b')).toMatchObject({ code: 0, report: { findings: [], ledger: { sends: 1, before: 1 } } });
}, 60_000);
