import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { adoptJournal, SIGNING, writeKeyFiles } from '../proofs/signing.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { expectPromisesKept, untilLeased, untilSettled, worldOfTest } from './support/payout-world.js';

/** Two hosts with a journal each: who takes over cannot know what was sent before its journal began. */

it.each<[string, NodeJS.Signals]>([
  ['once its journal is adopted, without a release', 'SIGTERM'],
  ['by the first host, when that returns', 'SIGKILL'],
])(
  'a host with a journal that was not adopted holds nothing; all is sent %s',
  async (_, signal) => {
    const world = await worldOfTest();
    const keys = await writeKeyFiles(world.dir);
    const { redisUrl, platformId } = world;
    const producer = closeAfterTest(new PayoutProducer({ redisUrl, platformId, ...SIGNING }));
    const startHost = (host: string) =>
      world.startWorker({ journalDir: join(world.dir, host), environment: keys.workerEnvironment });

    // Host a sends, with a journal that counts as complete; some 16 payouts wait when it ends, and b stands by.
    await adoptJournal(join(world.dir, 'a'), platformId);
    const first = startHost('a');
    await untilLeased(first);
    const ids = Array.from({ length: 20 }, (__, index) => `P${index + 1}`);
    const payouts = ids.map((payoutId) => ({
      payoutId,
      paymentId: 1,
      amount: '0.01',
      addressTo: `wallet-${payoutId}`,
    }));
    await producer.enqueueMany(payouts);
    await until('some are sent', () => world.sandbox.stats().arrivals >= 3);
    const second = startHost('b');
    await until('it stands by', async () => (await second.get('/readyz')).status !== 0);
    first.kill(signal);
    await first.ended;
    await until('it says why it sends nothing', async () => {
      const { status, body } = await second.get('/readyz');
      return status === 503 && body.includes('payouts audit adopt-journal');
    });

    if (signal === 'SIGKILL') {
      startHost('a');
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
    } else {
      // Longer than a lease and its quarantine.
      await delay(6_000);
      const { held, queued, sender } = await producer.stats();
      expect({ held, isWaiting: queued > 10, sender }).toEqual({ held: 0, isWaiting: true, sender: null });
      const env = { ...world.env, SEND_JOURNAL_DIR: join(world.dir, 'b'), PAYOUT_KEYS_FILE: keys.keysFile };
      const { stdout } = await runCli(['stats'], { env });
      expect(stdout).toMatch(/: The worker refuses to send\nb:\d+: .*payouts audit adopt-journal/);
      const adopted = await runCli(['audit', 'adopt-journal', '--yes', '--reason', 'host a has ended'], { env });
      expect(adopted).toMatchObject({ code: 0 });
      await untilSettled(world, 20);
    }
    await expectPromisesKept(world);
    await until('the second is well', async () => (await second.get('/readyz')).status === 200);
  },
  240_000,
);
