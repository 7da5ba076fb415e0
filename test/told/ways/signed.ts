import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import type { PayoutInput } from '../../../src/ledger/payout.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { keyEntry, testKey, type KeyEntry, TEST_AUDIENCE } from '../../control/support/keys.js';
import { ForgedAccount } from '../../forging/support/forged-account.js';
import { until } from '../../support/until.js';
import type { Rig } from '../support/rig.js';
import { told, type Way } from '../way.js';

const HOUR_MS = 3_600_000;
const [SHOP, ANN] = [testKey(1), testKey(2)];

/** A worker that sends nothing unsigned, with a journal that counts as complete. */
async function prepareKeys(rig: Rig, shop: Partial<KeyEntry> = {}): Promise<void> {
  const file = join(rig.world.dir, 'keys.json');
  const keys = [keyEntry(SHOP, shop), keyEntry(ANN, { name: 'ann', role: 'operator', person: 'Ann' })];
  await writeFile(file, JSON.stringify({ version: 1, keys }), { mode: 0o600 });
  Object.assign(rig.environment, { PAYOUT_KEYS_FILE: file });
  const journal = await FileSendJournal.open({ dir: rig.journalDir, platformId: rig.platformId });
  await journal.noteComplete({ at: Date.now(), by: 'ann', reason: 'new account' });
  await journal.close();
}

function payment(payoutId: string): PayoutInput {
  return { payoutId, paymentId: 1, amount: '0.01', addressTo: 'wallet-signedxxxxxxxxxxxxxxxxxxxxxxxx' };
}

async function enqueueSigned({ redis, platformId }: Rig, payoutId: string): Promise<void> {
  const signingKey = { name: 'shop', privateKey: SHOP };
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId, signingKey, audience: TEST_AUDIENCE });
  await producer.enqueue(payment(payoutId));
  await producer.close();
}

async function untilHeld({ world: { producer } }: Rig): Promise<void> {
  await until('the payout is held', async () => (await producer.stats()).held === 1);
}

/** What keys forbid. */
export const SIGNED_WAYS: readonly Way[] = [
  {
    name: 'A payout is held, since nobody signed it',
    prepare: prepareKeys,
    happens: async (rig) => {
      await rig.world.enqueue(1);
      await untilHeld(rig);
    },
    told: told(
      'holds',
      ['PayoutsHeld'],
      [200, '1 payout held, and not sent'],
      [0, 'worker', '1 payout held, and not sent'],
      'held',
    ),
  },
  {
    name: 'A payout is held, since someone altered it in Redis',
    prepare: prepareKeys,
    happens: async (rig) => {
      const account = new ForgedAccount(rig.platformId, rig.redis.url, rig.client);
      // Signed for another account.
      await account.enqueueAs(payment('P-1'), { platformId: rig.platformId + 1 });
      await account.close();
      await untilHeld(rig);
    },
    told: told(
      'holds',
      ['PayoutsTampering', 'PayoutsHeld'],
      [200, '1 payout held, and not sent'],
      [0, 'worker', '1 payout held, and not sent'],
      'tampering',
    ),
  },
  {
    name: 'Payouts wait that were signed before the send journal began, and nobody adopted it',
    prepare: prepareKeys,
    happens: async (rig) =>
      rig.replaceWorker(async () => {
        for (const payoutId of ['P-1', 'P-2']) await enqueueSigned(rig, payoutId);
        await rm(rig.journalDir, { recursive: true });
      }),
    told: told(
      'refused',
      ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      [503, 'payouts audit adopt-journal'],
      [1, 'signed journal', 'this host sends nothing: payouts wait that were signed before'],
      'journal',
    ),
  },
  {
    name: 'The only key of a producer has ended',
    prepare: async (rig) => prepareKeys(rig, { notAfter: new Date(Date.now() - HOUR_MS).toISOString() }),
    happens: async (rig) => {
      await enqueueSigned(rig, 'P-1');
      await untilHeld(rig);
    },
    told: told(
      'holds',
      ['PayoutsHeld', 'PayoutsKeyExpires'],
      [200, '1 payout held, and not sent'],
      [1, 'keys', 'no key of a producer that is valid now'],
      'held',
    ),
  },
  {
    name: 'Someone removes a pause from Redis',
    prepare: prepareKeys,
    happens: async (rig) => {
      await enqueueSigned(rig, 'P-1');
      await until('it is paid', async () => (await rig.world.producer.stats()).completed === 1);
      await rig.operator.pause({ by: 'ann', reason: 'to check it' });
      await enqueueSigned(rig, 'P-2');
      await until('the worker has seen it', () => rig.worker.log().includes('the account is paused'));
      await rig.client.hdel(`${rig.prefix}:ledger`, 'pausedReason');
    },
    told: told(
      'standsStill',
      ['PayoutsTampering', 'PayoutsStandStill'],
      [200, 'A pause is gone from Redis, and no operator signed that'],
      [1, 'signed journal', 'although Redis shows no pause'],
      'tampering',
    ),
  },
];
