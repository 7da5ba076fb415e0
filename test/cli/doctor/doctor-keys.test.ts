import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { signAct } from '../../../src/control/approvals/act-signer.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { keyEntry, testKey, type KeyEntry, TEST_AUDIENCE } from '../../control/support/keys.js';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { problemOf, useDoctor, warningOf } from '../support/doctor-rig.js';

const doctor = useDoctor();

const [SHOP, ANN, WORKER] = [testKey(1), testKey(2), testKey(3)];
const shop = (changes: Partial<KeyEntry> = {}): KeyEntry => keyEntry(SHOP, changes);
const ann = (changes: Partial<KeyEntry> = {}): KeyEntry =>
  keyEntry(ANN, { name: 'ann', role: 'operator', person: 'Ann', ...changes });
const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
const FINE = { code: 0, found: [] };

type Found = Promise<{ code: number; found: CheckResult[] }>;

/** Runs doctor with a keyring of these keys. @returns what the checks of keys and journal found */
async function findWith(keys: readonly KeyEntry[], environment: Record<string, string> = {}): Found {
  const file = join(doctor.dir, 'keys.yaml');
  await writeFile(file, JSON.stringify({ version: 1, keys }), { mode: 0o600 });
  const { code, found } = await doctor.findings({ PAYOUT_KEYS_FILE: file, ...environment });
  return { code, found: found.filter(({ name }) => name !== 'sender') };
}

async function withJournal(write: (journal: FileSendJournal) => Promise<unknown> | undefined): Promise<void> {
  const journal = await FileSendJournal.open({ dir: join(doctor.dir, 'journal'), platformId: doctor.platformId });
  await write(journal);
  await journal.close();
}
const adoptJournal = async (): Promise<void> =>
  withJournal(async (journal) => journal.noteComplete({ at: Date.now(), by: 'ann', reason: 'new account' }));

it('payouts doctor without a keyring says where to begin', async () => {
  const { out } = await doctor.run();
  expect(out).toMatch(/! keys +PAYOUT_KEYS_FILE is not set: anyone who can write to Redis can pay himself\n/);
  expect(out).toMatch(/→ .*docs\/control\.md.*`payouts keys generate NAME .*--role producer`/);
  expect(out).not.toContain('signed journal');
  const { found } = await doctor.findings({ PAYOUT_WORKER_KEY_NAME: 'worker-1' });
  expect(found).toContainEqual(problemOf('keys', 'PAYOUT_WORKER_KEY_FILE is required'));
});

it('payouts doctor judges the keyring', async () => {
  await adoptJournal();
  expect(await findWith([shop(), ann()])).toEqual(FINE);
  const { out } = await doctor.run();
  expect(out).toMatch(/✓ keys +only signed payouts are sent; 2 keys in .*keys\.yaml\n/);
  expect(out).toMatch(/✓ signed journal +stated to be complete by ann \(new account\)\n/);
  for (const ended of [[], [shop({ notBefore: '2125-01-01T00:00:00Z' })], [shop({ revoked: true })]]) {
    const { code, found } = await findWith([...ended, ann()]);
    expect([code, found[0]]).toEqual([1, problemOf('keys', 'no key of a producer that is valid now')]);
  }
  const former = keyEntry(WORKER, { name: 'former', person: 'Payroll', notAfter: inDays(-1) });
  for (const [keys, ...findings] of [
    [[shop(), ann({ revoked: true })], warningOf('keys', 'no key of an operator', '--role operator')],
    [[shop({ notAfter: inDays(13.9) }), ann()], warningOf('keys', 'the key "shop" (producer) ends at')],
    [[shop(), ann(), former], warningOf('keys', 'the key "former" (producer) ended at')],
    [[shop({ person: 'Payroll' }), ann(), former]],
  ] as [KeyEntry[], ...unknown[]][]) {
    expect(await findWith(keys)).toEqual({ code: 0, found: findings });
  }
  await chmod(join(doctor.dir, 'keys.yaml'), 0o666);
  const open = problemOf('keys', 'is not trusted: others than its owner can write');
  expect((await doctor.findings()).found).toContainEqual(open);
});

it('payouts doctor names a key for final states that nobody would believe', async () => {
  await adoptJournal();
  const file = join(doctor.dir, 'worker.pem');
  await writeFile(file, WORKER.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  const environment = { PAYOUT_WORKER_KEY_FILE: file, PAYOUT_WORKER_KEY_NAME: 'worker-1' };
  const worker = keyEntry(WORKER, { name: 'worker-1', role: 'worker', person: 'Host 1' });
  const missing = await findWith([shop(), ann()], environment);
  expect(missing).toEqual({ code: 1, found: [problemOf('keys', 'which has none of that name (got "worker-1")')] });
  expect(await findWith([shop(), ann(), worker], environment)).toEqual(FINE);
});

it('payouts doctor reads in the journal that what was signed before is not sent', async () => {
  const adopt = `\`payouts audit adopt-journal --account ${doctor.platformId} --reason WHY\``;
  const first = "this host sends no payout that was signed before the worker's first start";
  expect((await findWith([shop(), ann()])).found).toEqual([warningOf('signed journal', first, adopt)]);
  await withJournal(() => undefined);
  const before = warningOf('signed journal', `signed before ${new Date().toISOString().slice(0, 10)}`);
  expect((await findWith([shop(), ann()])).found).toEqual([before]);
});

it('payouts doctor reads in the journal a pause that someone removed from Redis', async () => {
  await adoptJournal();
  await withJournal(async (journal) => journal.notePaused({ at: Date.now(), reason: 'looks like a block' }));
  const { code, found } = await findWith([shop(), ann()]);
  const removed = problemOf('signed journal', '(looks like a block), although Redis shows no pause');
  expect([code, found]).toEqual([1, [removed]]);
  expect(found[0]?.fix).toContain(`payouts resume --account ${doctor.platformId} --key FILE --reason WHY`);
  const account = openAccount({ platformId: doctor.platformId, redisUrl: doctor.redis.url });
  const sign = async (text: string) => Promise.resolve(signText(text, ANN));
  const signer = { name: 'ann', audience: TEST_AUDIENCE, sign };
  const content = { act: 'resume', payoutId: '', intent: '', attempt: undefined, reason: 'settled' } as const;
  await account.ledger.pause('ann', 'looks like a block');
  expect((await findWith([shop(), ann()])).found).toEqual([problemOf('pause', 'looks like a block')]);
  await account.ledger.resume('ann', 'settled', await signAct(signer, doctor.platformId, content, Date.now()));
  await account.close();
  expect(await findWith([shop(), ann()])).toEqual(FINE);
});
