import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ForgedAccount } from '../../forging/support/forged-account.js';
import { adoptJournal } from '../../proofs/signing.js';
import { writeKeyring } from '../../control/support/key-files.js';
import { keyEntry, testKey, type KeyEntry } from '../../control/support/keys.js';
import { until } from '../../support/until.js';
import type { Rig } from '../rig.js';
import { told, warned, type Way } from './way.js';
import { cents } from '../../support/account.js';

export async function prepareKeyring({ world, environment }: Rig, shop: Partial<KeyEntry> = {}): Promise<void> {
  const keys = [keyEntry(testKey(1), shop), keyEntry(testKey(2), { name: 'ann', role: 'operator', person: 'Ann' })];
  Object.assign(environment, { PAYOUT_KEYS_FILE: await writeKeyring(join(world.dir, 'keys.json'), keys) });
}

/** A keyring, and a journal that counts as complete. */
async function prepareKeys(rig: Rig, shop: Partial<KeyEntry> = {}): Promise<void> {
  await prepareKeyring(rig, shop);
  await adoptJournal(rig.journalDir, rig.platformId);
}

async function enqueueSigned(rig: Rig, ...payoutIds: string[]): Promise<void> {
  const producer = rig.openSigningProducer();
  await producer.enqueueMany(cents(payoutIds));
  await producer.close();
}

async function untilHeld({ world: { producer } }: Rig): Promise<void> {
  await until('the payout is held', async () => (await producer.stats()).held === 1);
}

export async function enqueueAndWait(rig: Rig): Promise<void> {
  await rig.world.enqueue(1);
  await untilHeld(rig);
}

const HELD = '1 payout held, and not sent';

export const SIGNED_WAYS: readonly Way[] = [
  {
    name: 'A payout is held, since nobody signed it',
    prepare: prepareKeys,
    happens: enqueueAndWait,
    told: warned('holds', 'Held', HELD),
  },
  {
    name: 'A payout is held, since someone altered it in Redis',
    prepare: prepareKeys,
    happens: async (rig) => {
      const account = new ForgedAccount(rig.platformId, rig.redis.url, rig.client);
      // Signed for another account.
      for (const payout of cents(['P-1'])) await account.enqueueAs(payout, { platformId: rig.platformId + 1 });
      await account.close();
      await untilHeld(rig);
    },
    told: warned('holds', 'Tampering Held', HELD),
  },
  {
    name: 'Payouts wait that were signed before the send journal began, and nobody adopted it',
    prepare: prepareKeys,
    happens: async (rig) =>
      rig.replaceWorker(async () => {
        await enqueueSigned(rig, 'P-1', 'P-2');
        await rm(rig.journalDir, { recursive: true });
      }),
    told: told(
      'refused',
      'SendingRefused NoSender StandStill',
      [503, 'payouts audit adopt-journal'],
      [1, 'signed journal', 'this host sends nothing: payouts wait that were signed before'],
    ),
  },
  {
    name: 'The only key of a producer has ended',
    prepare: async (rig) => prepareKeys(rig, { notAfter: new Date(Date.now() - 3_600_000).toISOString() }),
    happens: async (rig) => {
      await enqueueSigned(rig, 'P-1');
      await untilHeld(rig);
    },
    told: told('holds', 'Held KeyExpires', [200, HELD], [1, 'keys', 'no key of a producer that is valid now']),
  },
  {
    name: 'Someone removes a pause from Redis',
    prepare: prepareKeys,
    happens: async (rig) => {
      await enqueueSigned(rig, 'P-1');
      await until('it is paid', async () => (await rig.world.producer.stats()).completed === 1);
      await rig.operator.pause({ by: 'ann', reason: 'to check it' });
      await enqueueSigned(rig, 'P-2');
      await rig.worker.said('the account is paused');
      await rig.client.hdel(`${rig.prefix}:ledger`, 'pausedReason');
    },
    told: told(
      'standsStill',
      'Tampering StandStill',
      [200, 'A pause is gone from Redis, and no operator signed that'],
      [1, 'signed journal', 'although Redis shows no pause'],
    ),
  },
];

export async function preparePolicy(rig: Rig, rule: string): Promise<void> {
  const file = join(rig.world.dir, 'policy.yaml');
  const text = `version: 1\nplatformId: "${rig.platformId}"\ndefault: send\nrules:\n  - ${rule}\n`;
  await writeFile(file, text, { mode: 0o600 });
  Object.assign(rig.environment, { PAYOUT_POLICY_FILE: file });
}

export const POLICY_WAYS: readonly Way[] = [
  {
    name: 'The gateway tells no rates, and a rule of the policy is in dollars',
    sandbox: { faults: [{ kind: 'json-500', endpoint: 'currencies' }] },
    prepare: async (rig) => preparePolicy(rig, '{ name: never-more, cap: { usd: "1000" }, over: refuse }'),
    happens: enqueueAndWait,
    told: warned('queriesFail', 'RatesStale', 'Rates in dollars: missing'),
  },
  {
    name: 'A rule of the policy holds a payout',
    prepare: async (rig) => preparePolicy(rig, '{ name: denied, when: { paymentId: ["1"] }, over: refuse }'),
    happens: enqueueAndWait,
    told: warned('holds', 'Held', HELD),
  },
];
