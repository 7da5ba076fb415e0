import type { PayoutInput } from '../../../src/ledger/payout.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { type Attack, type Reached, type Reason, row, rowOf, type Target } from '../support/attack.js';
import { type KeyName, signAct, type SignOptions, signPayout } from '../support/forged-account.js';

/** Fields of a queued payout that the attacker alters or removes; test/control/statements.test.ts has all. */

const ofFull = rowOf({
  input: { symbol: 'USD', reference: 'INV 77', metadata: { order: 77, list: [1, 'b'] } } satisfies Partial<PayoutInput>,
  sign: { requestedBy: 'Alice' },
});

const altered = (field: string, alter: (before: string) => string, reason: Reason): Attack =>
  ofFull(`${field} altered: ${String(alter)}`, reason, async ({ account, payoutId }) =>
    account.set(payoutId, { [field]: alter((await account.record(payoutId))[field] ?? '') }),
  );

const removed = (fields: string, reason: Reason): Attack =>
  ofFull(`without ${fields}`, reason, async ({ account, payoutId }) => account.unset(payoutId, ...fields.split(' ')));

export const ALTERED: readonly Attack[] = [
  altered('addressTo', () => 'wallet-thief000000000000000000000000000000', 'bad_signature'),
  altered('amount', () => '1250', 'bad_signature'),
  altered('amount', () => '-5', 'fields'),
  altered('paymentId', () => '1', 'bad_signature'),
  altered('paymentId', () => '0x6', 'fields'),
  // The same JSON in other bytes.
  altered('metadata', (before) => before.replace(':', ': '), 'bad_signature'),
  altered('requestedBy', () => 'Mallory', 'bad_signature'),
  altered('reference', (before) => `${before}\naddressTo=wallet-thief`, 'fields'),
  altered('key', () => 'constructor', 'unknown_key'),
  altered('exp', (before) => before.replace(/^\d{4}/, '2999'), 'bad_signature'),
  altered('aud', () => 'staging', 'wrong_audience'),
  removed('symbol', 'bad_signature'),
  removed('exp', 'fields'),
  removed('key sig sigRest iat exp', 'unsigned'),
  removed('aud', 'wrong_audience'),
];

const set = (fields: Readonly<Record<string, string>>, expect: Attack['expect']): Attack =>
  row(`set ${JSON.stringify(fields)}`, expect, async ({ account, payoutId }) => account.set(payoutId, fields));

/** What is not signed: it decides about order and what is shown, and moves no money. */
export const NOT_SIGNED: readonly Attack[] = [
  // An attempt of a payout that was never sent.
  set({ priority: '1', batch: 'other', round: '7', attempt: '5' }, 'paid as signed'),
  row('the two parts of the signature joined', 'paid as signed', async ({ account, payoutId }) => {
    const { sig = '', sigRest = '' } = await account.record(payoutId);
    await account.set(payoutId, { sig: sig + sigRest });
    await account.unset(payoutId, 'sigRest');
  }),
  set({ notBefore: '2999-01-01T00:00:00.000Z' }, 'waits'),
];

/** Payouts that the attacker invents, copies, or signs with a key that may not. */

type Fields = Readonly<Record<string, string>>;

/** A payout of the attacker's own, to his own address, with some signature. @returns its id */
async function invent(target: Target, options: SignOptions | 'unsigned', change: Fields = {}) {
  const payoutId = `${target.payoutId}-thief`;
  const invented = { payoutId, paymentId: 6, amount: '99', addressTo: `wallet-${payoutId.toLowerCase()}`, ...change };
  const signature = options === 'unsigned' ? {} : target.account.signatureFields(invented, options);
  const { amount, addressTo } = invented;
  return target.account.invent(payoutId, { paymentId: '6', amount, addressTo, ...signature, ...change });
}

/** With what the options say: a key that the attacker has, or by itself valid and out of its time. */
const signedWith = (options: SignOptions, reason: Reason): Attack =>
  row(`signed with ${JSON.stringify(options)}`, reason, async (target) => invent(target, options));

const resigned = (name: string, change: (signature: string, target: Target) => string | Promise<string>): Attack =>
  row(name, 'bad_signature', async (target) => {
    const { account, payoutId } = target;
    const { sig = '', sigRest = '' } = await account.record(payoutId);
    const changed = await change(sig + sigRest, target);
    await account.set(payoutId, { sig: changed.slice(0, 64), sigRest: changed.slice(64) });
  });

const elsewhere = ({ payoutId, input }: Target, name: string) => ({
  ...{ ...input, payoutId: `${payoutId}-${name}`, addressTo: `${input.addressTo}${name}` },
});

export const FORGED: readonly Attack[] = [
  row('payout invented without a signature', 'unsigned', async (target) => invent(target, 'unsigned')),
  row('payout invented with a signature of random bytes', 'bad_signature', async (target) =>
    invent(target, {}, { sig: 'A'.repeat(64) }),
  ),
  row("amount below zero, signed with a producer's key", 'fields', async (target) =>
    invent(target, {}, { amount: '-5' }),
  ),
  signedWith({ key: 'stolen' }, 'revoked_key'),
  signedWith({ key: 'former' }, 'key_not_valid'),
  signedWith({ key: 'olga' }, 'wrong_role'),
  signedWith({ key: 'foreign' }, 'unknown_key'),
  signedWith({ key: 'foreign', as: 'shop' }, 'bad_signature'),
  signedWith({ days: [1, 2] }, 'issued_in_future'),
  signedWith({ days: [-2, -1] }, 'expired'),
  signedWith({ days: [0, 8] }, 'lifetime'),
  // Before the journal was begun.
  signedWith({ days: [-1, 5] }, 'before_birth'),
  // Another environment, of the same keys and account.
  signedWith({ audience: 'staging' }, 'wrong_audience'),
  row('signed for another environment, and this one named beside it', 'bad_signature', async (target) =>
    invent(target, { audience: 'staging' }, { aud: TEST_AUDIENCE }),
  ),
  signedWith({ platformId: 1 }, 'bad_signature'),
  resigned('signature cut', (signature) => signature.slice(0, -1)),
  resigned("an operator's act as signature", async (_, { account, payoutId }) => {
    return (JSON.parse(await account.resendAct(payoutId)) as { signature: string }).signature;
  }),
  row('payout copied under a new id', 'bad_signature', async ({ account, payoutId }) =>
    account.invent(`${payoutId}-copy`, await account.record(payoutId)),
  ),
  row('whole record copied from another account', 'bad_signature', async (target) => {
    const theirs = elsewhere(target, 'else');
    await target.other.enqueue(theirs);
    return target.account.invent(theirs.payoutId, await target.other.record(theirs.payoutId));
  }),
  row('record renamed to a key of another account', 'bad_signature', async (target) => {
    const { account, other } = target;
    const moved = elsewhere(target, 'moved');
    await other.enqueueAs(moved);
    await account.redis.rename(other.keys.payout(moved.payoutId), account.keys.payout(moved.payoutId));
    return account.revive(moved.payoutId);
  }),
  row('whole record copied from another environment', 'wrong_audience', async (target) => {
    const { account, other } = target;
    const theirs = elsewhere(target, 'staging');
    // Staging's account has the same number.
    await other.enqueueAs(theirs, { platformId: account.platformId, audience: 'staging' });
    await account.invent(theirs.payoutId, await other.record(theirs.payoutId));
    await other.redis.del(other.keys.payout(theirs.payoutId));
    return theirs.payoutId;
  }),
];

export const SWAPPED = row('signatures of two payouts swapped', 'bad_signature', async (target) => {
  const { account, payoutId } = target;
  const second = elsewhere(target, '2');
  await account.enqueueAs(second);
  const [a, b] = [await account.record(payoutId), await account.record(second.payoutId)];
  const parts = ({ sig = '', sigRest = '', iat = '', exp = '' }: Fields): Fields => ({ sig, sigRest, iat, exp });
  await account.set(payoutId, parts(b));
  await account.set(second.payoutId, parts(a));
  return second.payoutId;
});

/** Payouts that were sent, or decided about, and that the attacker wants to be sent again. */

const revived = (
  name: string,
  from: Reached,
  change: Readonly<Record<string, string>> = {},
  expect: Attack['expect'] = 'sent_before',
): Attack => rowOf({ from })(name, expect, async ({ account, payoutId }) => account.revive(payoutId, change));

const ofSent = rowOf({ from: 'completed' });
const ofNotSent = rowOf({ from: 'not sent' });

/** An act in the record that does not count. The account's breaker is in nobody's way, and the payout was not paid. */
const withAct = (name: string, make: (target: Target) => Promise<string> | string): Attack =>
  ofNotSent(`resend with ${name}`, 'sent_before', async (target) =>
    target.account.revive(target.payoutId, { act: await make(target) }),
  );

type Change = Parameters<Target['account']['resendAct']>[1];

const actBy = (key: KeyName, change: Change = {}): Attack =>
  withAct(`the act of ${key} with ${JSON.stringify(change)}`, async ({ account, payoutId }) =>
    account.resendAct(payoutId, { key, ...change }),
  );

const paymentOf = ({ payoutId, input: { paymentId, amount, addressTo } }: Target) => ({
  ...{ payoutId, paymentId, amount, addressTo },
});

const HISTORY = ['tokens', 'h1', 'h2', 'h3', 'answer', 'gatewayId', 'fee', 'place', 'queuedSince'];

export const REVIVED: readonly Attack[] = [
  ...(['completed', 'failed', 'rejected', 'unknown', 'not sent'] as const).map((from) =>
    revived(`${from} set back to queued`, from),
  ),
  revived('completed set back to queued, attempt raised', 'completed', { attempt: '7' }),
  ofSent('completed set back to queued, tokens and history removed', 'sent_before', async ({ account, payoutId }) => {
    await account.unset(payoutId, ...HISTORY);
    await account.revive(payoutId, { n: '1' });
  }),
  ofSent('paid payout with a newer signature of the same producer', 'sent_before', async (target) => {
    const signature = target.account.signatureFields(paymentOf(target), { days: [0, 0.5] });
    await target.account.revive(target.payoutId, signature);
  }),
  actBy('olga', { attempt: 2 }),
  actBy('olga', { intent: '0'.repeat(64) }),
  actBy('olga', { days: [-2, -1] }),
  ...(['shop', 'stolen', 'foreign'] as const).map((key) => actBy(key)),
  withAct('an act for another payout', async ({ account, payoutId }) =>
    account.resendAct(payoutId, { payoutId: `${payoutId}-x` }),
  ),
  withAct('an act for another account', async ({ account, payoutId }) => {
    const intent = await account.intentHash(payoutId);
    return signAct(account.platformId + 1, { act: 'resend', payoutId, intent, attempt: 1 });
  }),
  withAct('an act to resume', ({ account }) => signAct(account.platformId, { act: 'resume' })),
  withAct('an act whose attempt was altered', async ({ account, payoutId }) =>
    (await account.resendAct(payoutId, { attempt: 2 })).replace('"attempt":2', '"attempt":1'),
  ),
  // The payout is signed, unaltered, and was never sent: only the journal has that it was cancelled.
  revived('cancelled set back to queued', 'cancelled', {}, 'ended_before'),
  ofNotSent('resend with the act that an operator signed for it', 'paid as signed', async ({ account, payoutId }) =>
    account.revive(payoutId, { act: await account.resendAct(payoutId) }),
  ),
];

/** Each has an account of its own, which stops where the journal knows the number as sent. */
export const STOPPING: readonly Attack[] = [
  revived('completed set back to queued, attempt lowered', 'completed', { attempt: '0' }, 'stopped'),
  revived('attempt of a paid payout set below zero', 'completed', { attempt: '-3' }, 'fields'),
];

/** What someone does who has a token of the HTTP door with every right, and no producer's key. */

/** Sends a request to the door of the target's account. @throws Error unless it answers with one of the statuses */
type AskDoor = (
  statuses: number | readonly number[],
  target: Target,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
) => Promise<void>;

const PATH = '/v1/payouts';

function thiefs({ payoutId }: Target) {
  const addressTo = `wallet-thief${payoutId.toLowerCase()}`;
  return { paymentId: 6, amount: '99', payoutId: `${payoutId}-thief`, addressTo };
}

async function signatureOf({ account, payoutId }: Target): Promise<object> {
  const { key, signature, issuedAt, expiresAt, audience } = (await account.payout(payoutId)).signed ?? {};
  return { key, signature, issuedAt, expiresAt, audience };
}

/** The attacks once there is a door. What becomes of other signatures the worker decides: see above. */
export const throughDoor = (ask: AskDoor): readonly Attack[] => [
  row('an unsigned payout, alone and behind a signed one', 'paid as signed', async (target) => {
    const payout = thiefs(target);
    const signed = { ...payout, ...signPayout(target.account.platformId, payout, { key: 'foreign' }) };
    const behind = [signed, { ...payout, payoutId: `${target.payoutId}-bare` }];
    for (const body of [payout, [payout], behind]) await ask(422, target, 'POST', PATH, body);
    await ask(404, target, 'GET', `${PATH}/${payout.payoutId}`);
  }),
  row('a signature that is null, empty or an object, and the stored form of one', 'paid as signed', async (target) => {
    for (const signature of [null, '', {}, []])
      await ask([400, 422], target, 'POST', PATH, { ...thiefs(target), signature });
    const { signed } = await target.account.payout(target.payoutId);
    await ask(400, target, 'POST', PATH, { ...thiefs(target), signature: signed?.signature, signed });
  }),
  row('the address and the amount of a signed payout', 'paid as signed', async (target) => {
    const payout = { ...target.input, ...(await signatureOf(target)) };
    await ask(400, target, 'POST', PATH, { ...payout, addressTo: 'wallet-thief000000000000000000000000' });
    await ask(400, target, 'POST', PATH, [{ ...payout, amount: '1250' }]);
  }),
  row('the signature of another payout', 'paid as signed', async (target) => {
    const payout = { ...target.input, payoutId: `${target.payoutId}-copy` };
    await ask(400, target, 'POST', PATH, { ...payout, ...(await signatureOf(target)) });
  }),
  row('signed with a key that the keyring does not have', 'paid as signed', async (target) => {
    const payout = thiefs(target);
    const signature = signPayout(target.account.platformId, payout, { key: 'foreign' });
    await ask(400, target, 'POST', PATH, { ...payout, ...signature });
  }),
  row('junk in the place of the signature, dated ahead', 'paid as signed', async (target) => {
    const payout = { ...target.input, ...(await signatureOf(target)), signature: 'A'.repeat(86) };
    for (const issuedAt of ['9998-01-01T00:00:00.000Z', new Date(Date.now() + 1_000).toISOString()]) {
      await ask(400, target, 'POST', PATH, { ...payout, issuedAt, expiresAt: '9998-01-07T00:00:00.000Z' });
    }
  }),
  row('paths of operators', 'paid as signed', async (target) => {
    for (const act of ['release', 'retry', 'resolve', 'approve', 'pause', 'resume']) {
      for (const path of [`${PATH}/${target.payoutId}/${act}`, `/v1/${act}`]) await ask(404, target, 'POST', path, {});
    }
  }),
];
