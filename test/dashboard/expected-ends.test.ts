import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { startDashboard, type DashboardServer } from '../../src/dashboard/index.js';
import { toJobId } from '../../src/queues/payout-queues.js';
import { until } from '../support/until.js';
import { openWorld, type PayoutWorld } from '../worker/support/payout-world.js';
import { endAllWorkers } from '../worker/support/worker-process.js';

let world: PayoutWorld;
let dashboard: DashboardServer;

beforeEach(async () => {
  world = await openWorld();
  const { platformId, redisUrl } = world;
  dashboard = await startDashboard({ platformId, redisUrl, host: '127.0.0.1', port: 0 });
});

afterEach(async () => {
  await endAllWorkers();
  await dashboard.close();
  await world.close();
});

interface BoardJob {
  readonly failedReason?: string;
  readonly stacktrace: readonly string[];
}

async function readJob(payoutId: string): Promise<BoardJob> {
  const path = `board/api/queues/withdraw/${encodeURIComponent(encodeURIComponent(toJobId({ payoutId })))}`;
  return ((await (await fetch(dashboard.url + path)).json()) as { job: BoardJob }).job;
}

it.each([
  ['rejected', { kind: 'reject', message: 'Insufficient balance' } as const, 'rejected: Insufficient balance'],
  ['unknown', { kind: 'drop-after' } as const, 'unknown: '],
])(
  'Bull Board shows the message of a payout that is %s, without a stack trace',
  async (state, fault, message) => {
    world.sandbox.addFaults([{ ...fault, times: 1 }]);
    const [payoutId = ''] = await world.enqueue(1);
    world.startWorker();
    await until(`it is ${state}`, async () => (await world.producer.get(payoutId))?.state === state);
    await until('its job ended', async () => (await readJob(payoutId)).failedReason !== undefined);
    const { failedReason, stacktrace } = await readJob(payoutId);
    expect(failedReason).toContain(message);
    expect(stacktrace).toEqual([]);
  },
  60_000,
);
