import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { adoptJournal, SIGNING, writeKeyFiles, type KeyFiles } from '../proofs/signing.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { expectPromisesKept, openWorld, untilSettled, type PayoutWorld } from './support/payout-world.js';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';

/** Two hosts with a journal each: who takes over cannot know what was sent before its journal began. */

jest.setTimeout(240_000);

let world: PayoutWorld;
let keys: KeyFiles;
let producer: PayoutProducer;

beforeEach(async () => {
  world = await openWorld();
  keys = await writeKeyFiles(world.dir);
  const { redisUrl, platformId } = world;
  producer = new PayoutProducer({ redisUrl, platformId, ...SIGNING });
});

afterEach(async () => {
  await producer.close();
  await endAllWorkers();
  await world.close();
});

interface Host extends WorkerProcess {
  readonly dir: string;
  readyz(): Promise<{ readonly status: number; readonly body: string }>;
}

async function startHost(host: string, environment: Readonly<Record<string, string>> = {}): Promise<Host> {
  const port = String(await findFreePort());
  const dir = join(world.dir, host);
  const worker = world.startWorker({
    journalDir: dir,
    environment: { ...keys.workerEnvironment, HEALTH_PORT: port, ...environment },
  });
  return {
    ...worker,
    dir,
    readyz: async () => {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
      return { status: response?.status ?? 0, body: (await response?.text()) ?? '' };
    },
  };
}

async function enqueue(count: number, prefix = 'P'): Promise<void> {
  await producer.enqueueMany(
    Array.from({ length: count }, (_, index) => ({
      ...{ payoutId: `${prefix}-${index + 1}`, paymentId: 1, amount: '0.01' },
      addressTo: `wallet-${prefix}${index + 1}`,
    })),
  );
}

async function sends(worker: WorkerProcess): Promise<void> {
  await until('it has the lease', () => worker.log().includes('acquired sender lease'));
}

const env = (host: string): Record<string, string> => ({
  REDIS_URL: world.redisUrl,
  GATEWAY_PLATFORM_ID: String(world.platformId),
  SEND_JOURNAL_DIR: join(world.dir, host),
  PAYOUT_KEYS_FILE: keys.keysFile,
});

/** Host a sends, with a journal that counts as complete; 16 payouts wait when it ends. @returns host b, which stood by */
async function failOver(signal: NodeJS.Signals): Promise<Host> {
  await adoptJournal(join(world.dir, 'a'), world.platformId);
  const first = await startHost('a');
  await sends(first);
  await enqueue(20);
  await until('some are sent', () => world.sandbox.stats().arrivals >= 3);
  const second = await startHost('b');
  await until('it stands by', async () => (await second.readyz()).status !== 0);
  first.kill(signal);
  await first.ended;
  return second;
}

describe('the worker of another host, with a journal that was not adopted', () => {
  it('stops the account and holds nothing; once the journal is adopted, everything is sent without a release', async () => {
    const second = await failOver('SIGTERM');
    await until('it says why it sends nothing', async () => {
      const { status, body } = await second.readyz();
      return status === 503 && body.includes('payouts audit adopt-journal');
    });
    // Longer than a lease and its quarantine.
    await delay(6_000);
    const { held, queued, sender } = await producer.stats();
    expect({ held, isWaiting: queued > 10, sender }).toEqual({ held: 0, isWaiting: true, sender: null });
    const stats = await runCli(['stats'], { env: env('b') });
    expect(stats.stdout).toMatch(/: The worker refuses to send\nb:\d+: .*payouts audit adopt-journal/);
    const adopted = await runCli(['audit', 'adopt-journal', '--yes', '--reason', 'host a has ended, ticket 812'], {
      env: env('b'),
    });
    expect(adopted).toMatchObject({ code: 0 });
    await untilSettled(world, 20);
    await expectPromisesKept(world);
    expect((await second.readyz()).status).toBe(200);
  });

  it('lets the first host have the lease when that returns', async () => {
    const second = await failOver('SIGKILL');
    await until('it says why it sends nothing', async () => (await second.readyz()).status === 503);
    await startHost('a');
    await until(
      'what the first left is settled',
      async () => {
        const { queued, sending, in_progress: open } = await producer.stats();
        return queued + sending + open === 0;
      },
      120_000,
    );
    const { held, sender } = await producer.stats();
    expect({ held, owner: sender?.owner.split(':')[0] }).toEqual({ held: 0, owner: 'a' });
    await expectPromisesKept(world);
    await until('the second stands by', async () => (await second.readyz()).status === 200);
  });
});
