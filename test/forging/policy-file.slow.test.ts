import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { POLICY_FILE_ATTACKS, type PolicyFiles } from './attacks/policy-files.js';
import type { ForgedAccount } from './support/forged-account.js';
import { ForgingWorld } from './support/forging-world.js';

/** A policy's file that was exchanged, or that others can write. */

const DENIED = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';

let world: ForgingWorld;

beforeAll(async () => {
  world = await ForgingWorld.open(POLICY_FILE_ATTACKS.length + 1);
}, 120_000);

afterAll(async () => {
  await world.close();
});

async function writeFiles({ platformId }: ForgedAccount): Promise<PolicyFiles> {
  const folder = join(world.dir, `policy-${platformId}`);
  await mkdir(folder, { mode: 0o755 });
  const files = {
    policyFile: join(folder, 'policy.yaml'),
    listFile: join(folder, 'deny.txt'),
    lenient: `version: 1\nplatformId: "${platformId}"\ndefault: send\nrules: []\n`,
  };
  const rule = '{ name: denied, when: { addressIn: deny.txt }, over: refuse }';
  await writeFile(files.listFile, `${DENIED}\n`, { mode: 0o600 });
  await writeFile(files.policyFile, files.lenient.replace('[]', `\n  - ${rule}`), { mode: 0o600 });
  return files;
}

async function becomes(account: ForgedAccount, payoutId: string, state: string): Promise<void> {
  await until(
    () => `${payoutId} is ${state}`,
    async () => (await account.payout(payoutId)).state === state,
    60_000,
  );
}

const order = (payoutId: string, addressTo: string) => ({ payoutId, paymentId: 6, amount: '1', addressTo });

it.each(POLICY_FILE_ATTACKS.map((attack, index) => [attack.name, attack, index] as const))(
  '%s: the former policy counts, and no worker starts with it',
  async (_, { attack, words }, index) => {
    const account = world.account(index);
    const files = await writeFiles(account);
    const { policyFile } = files;
    const worker = await world.startWorker({}, { policyFile }, [account]);
    await account.enqueue(order('held', DENIED));
    await becomes(account, 'held', 'held');

    await attack(files);
    worker.reloadPolicies();
    expect(worker.accounts[0]?.policy?.reloadTrouble).toMatch(words);
    await account.enqueue(order('later', DENIED));
    await account.enqueue(order('honest', 'wallet-honest'));
    await becomes(account, 'honest', 'completed');
    expect([(await account.payout('held')).state, (await account.payout('later')).state]).toEqual(['held', 'held']);
    expect(world.sandbox.payments(account.platformId).map(({ addressTo }) => addressTo)).toEqual(['wallet-honest']);
    await worker.stop();

    await expect(world.startWorker({}, { policyFile }, [account])).rejects.toThrow(words);
  },
  60_000,
);

it('one that its owner exchanges counts, and its hash is another', async () => {
  const account = world.account(POLICY_FILE_ATTACKS.length);
  const { policyFile, lenient } = await writeFiles(account);
  const worker = await world.startWorker({}, { policyFile }, [account]);
  await account.enqueue(order('held', DENIED));
  await becomes(account, 'held', 'held');
  const policy = worker.accounts[0]?.policy;
  const before = policy?.hash;
  await writeFile(policyFile, lenient);
  worker.reloadPolicies();
  expect(policy?.hash).not.toBe(before);
  await becomes(account, 'held', 'completed');
}, 60_000);
