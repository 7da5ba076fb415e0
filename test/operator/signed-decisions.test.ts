import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { verifyAct, type WantedAct } from '../../src/control/approvals/act.js';
import { ConflictError, StoppedError } from '../../src/base/errors.js';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { readSenderView } from '../../src/ledger/sender-view.js';
import { changeManyPayouts } from '../../src/operator/change-payouts.js';
import { openActSigner } from '../../src/control/keys/open-act-signer.js';
import { SignedDecisions } from '../../src/control/operator/sign-decision.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { keyringOf, type KeyEntry, TEST_AUDIENCE } from '../control/support/keys.js';
import { openTestKeys, type TestKey, type TestKeys } from '../control/support/key-files.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { testRedisUrl } from '../support/account.js';
import { sendOf } from './support/adoption-world.js';
import { intentHashOf, requireAct, sendOnce, sendSigned } from './support/signing-rig.js';

const ANN = { by: 'ann', reason: 'ticket 812' };
const UNTOUCHED = { name: 'ann', audience: TEST_AUDIENCE };
const ACCOUNT = { payoutId: '', intent: '', attempt: undefined } as const;

let account: TestAccount;
let keys: TestKeys;
let key: TestKey;
let entry: KeyEntry;
let operator: PayoutOperator;
let signer: ReturnType<typeof openActSigner>;

beforeEach(async () => {
  account = openTestAccount();
  keys = await openTestKeys();
  key = await keys.makeKey('ann');
  entry = { name: 'ann-laptop', role: 'operator', person: 'Ann', public: key.public };
  signer = openActSigner({ audience: TEST_AUDIENCE, keyFile: key.file, keyring: keyringOf(entry) });
  operator = operatorWith(signer);
});

afterEach(async () => {
  await operator.close();
  await account.close();
  await keys.close();
});

function operatorWith(signer?: ReturnType<typeof openActSigner>): PayoutOperator {
  const { platformId } = account;
  return new PayoutOperator({ platformId, redisUrl: testRedisUrl(), ...(signer && { signer }) });
}

const verify = (text: string | undefined, wanted: WantedAct) =>
  verifyAct(account.platformId, requireAct(text), wanted, keyringOf(entry), Date.now());

/** What a worker wants to see before it sends the payout once more. */
async function wantedOf(payoutId: string, attempt: number): Promise<WantedAct> {
  const payout = await account.ledger.require(payoutId);
  return { act: 'resend', payoutId, intent: intentHashOf(account.platformId, payout), attempt };
}

describe('an operator with a key', () => {
  it.each([
    ['retry', 'rejected', async () => operator.retry('p', ANN)],
    ['resolve as not sent', 'unknown', async () => operator.resolve('p', { kind: 'not_sent' }, ANN)],
  ] as const)('signs a %s: it names the intent and the attempt that paid nothing', async (_, state, decide) => {
    await sendSigned(account.ledger, state, 'p');
    const payout = await decide();
    expect(payout).toMatchObject({ state: 'queued' });
    const wanted = await wantedOf('p', 1);
    expect(verify(payout.act, wanted)).toMatchObject({ kind: 'verified', person: 'ann' });
    expect(verify(payout.act, { ...wanted, attempt: 2 })).toMatchObject({ kind: 'refused' });
    expect(requireAct(payout.act)).toMatchObject({ by: 'ann-laptop', reason: 'ticket 812' });
    // Each attempt by itself.
    await sendOnce(account.ledger, state, 'p');
    expect(verify((await decide()).act, await wantedOf('p', 2))).toMatchObject({ kind: 'verified' });
  });

  it('signs of a held payout the attempt that it is told', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    const { redis, keys: ledgerKeys } = account.connection;
    await redis.hset(ledgerKeys.payout('p'), { state: 'held', attempt: '0' });
    for (const unpaidAttempt of [0, 1.5, NaN])
      await expect(operator.release('p', ANN, { unpaidAttempt })).rejects.toThrow(
        `unpaidAttempt: must be a whole number from 1 on, not ${unpaidAttempt}`,
      );
    const unsigned = operatorWith();
    await expect(unsigned.release('p', ANN, { unpaidAttempt: 1 })).rejects.toThrow(/unpaidAttempt: .* a signer/);
    await unsigned.close();
    const payout = await operator.release('p', ANN, { unpaidAttempt: 1 });
    expect(verify(payout.act, await wantedOf('p', 1))).toMatchObject({ kind: 'verified' });
  });

  it('signs nothing about a payout that is unsigned, elsewhere, or sent again', async () => {
    await account.ledger.enqueue([aPayout('bare'), aPayout('fresh')]);
    await sendOnce(account.ledger, 'rejected', 'bare');
    const refused = operator.retry('bare', ANN);
    await expect(refused).rejects.toThrow(ConflictError);
    await expect(refused).rejects.toThrow(/^Payout bare carries no signature of a producer.*cancel it and enqueue/);
    await expect(operator.retry('fresh', ANN)).rejects.toThrow(/^Cannot move payout fresh from queued to queued/);
    await sendSigned(account.ledger, 'unknown', 'p');
    const decided = { payoutId: 'p', attempt: 2 };
    await expect(operator.resolve(decided, { kind: 'not_sent' }, ANN)).rejects.toThrow(/was sent again meanwhile/);
    for (const payoutId of ['bare', 'fresh', 'p']) {
      expect((await account.ledger.require(payoutId)).act).toBeUndefined();
    }
  });

  it('changes nothing where the signature is not given', async () => {
    await sendSigned(account.ledger, 'rejected', 'p');
    await account.ledger.pause('ann', 'look');
    const other = operatorWith({ ...UNTOUCHED, sign: async () => Promise.reject(new StoppedError('not touched')) });
    await expect(other.retry('p', ANN)).rejects.toThrow('not touched');
    await expect(other.resume(ANN)).rejects.toThrow('not touched');
    await other.close();
    expect(await account.ledger.require('p')).toMatchObject({ state: 'rejected' });
    expect((await readSenderView(account.connection)).pausedReason).toBe('look');
  });

  it('signs a resume, also where the ledger knows of no pause', async () => {
    await operator.pause(ANN);
    expect(await operator.resume(ANN)).toMatchObject({ changed: true });
    const first = (await readSenderView(account.connection)).resumeAct;
    expect(verify(first, { act: 'resume', ...ACCOUNT })).toMatchObject({ kind: 'verified', person: 'ann' });
    expect(await operator.resume({ ...ANN, reason: 'again' })).toMatchObject({ changed: false });
    const second = (await readSenderView(account.connection)).resumeAct;
    expect(requireAct(second).reason).toBe('again');
    expect(verify(second, { act: 'adopt', ...ACCOUNT })).toMatchObject({ kind: 'refused' });
  });

  it('signs an adoption, after its review', async () => {
    const dir = join(keys.dir, 'journal');
    await mkdir(dir);
    const journal = await FileSendJournal.open({ dir, platformId: account.platformId });
    await journal.bind({ ledgerId: 'former', epoch: 1, sends: 0, token: '' });
    await journal.append(sendOf('p-1', 1));
    await journal.close();
    const review = async () => Promise.reject(new StoppedError('no'));
    await expect(operator.adoptLedger({ journalDirs: [dir], review }, ANN)).rejects.toThrow(StoppedError);
    expect((await readSenderView(account.connection)).adoptAct).toBeUndefined();
    await operator.adoptLedger({ journalDirs: [dir] }, ANN);
    const { adoptAct } = await readSenderView(account.connection);
    expect(verify(adoptAct, { act: 'adopt', ...ACCOUNT })).toMatchObject({ kind: 'verified', person: 'ann' });
  });
});

it('a signed decision about many payouts is an act for each', async () => {
  await sendSigned(account.ledger, 'rejected', 'p', 'q');
  await account.ledger.enqueue([aPayout('bare')]);
  await sendOnce(account.ledger, 'rejected', 'bare');
  const access = openLedger({ platformId: account.platformId, redisUrl: testRedisUrl() });
  const payouts = [{ payoutId: 'p', attempt: 1 }, { payoutId: 'bare' }, { payoutId: 'nobody' }, { payoutId: 'q' }];
  const retry = { from: 'rejected', to: 'queued', payouts } as const;
  const errors = await changeManyPayouts(access, retry, ANN, new SignedDecisions(signer));
  await access.close();
  expect(errors.map((error) => error?.message.split(':')[0])).toEqual([
    ...[undefined, expect.stringMatching(/^Payout bare carries no signature/), 'Payout nobody not found', undefined],
  ]);
  for (const payoutId of ['p', 'q']) {
    const { act, state } = await account.ledger.require(payoutId);
    expect(state).toBe('queued');
    expect(verify(act, await wantedOf(payoutId, 1))).toMatchObject({ kind: 'verified' });
  }
  expect((await account.ledger.require('bare')).state).toBe('rejected');
});
