import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { row, type Attack, type Reason, type Target } from '../support/attack.js';
import { type SignOptions } from '../support/signers.js';

/** Payouts that the attacker invents, copies, or signs with a key that may not. */

type Fields = Readonly<Record<string, string>>;

/** A payout of the attacker's own, to his own address, with some signature. @returns its id */
async function invent(target: Target, options: SignOptions | 'unsigned', change: Fields = {}): Promise<string> {
  const payoutId = `${target.payoutId}-thief`;
  const invented = { payoutId, paymentId: 6, amount: '99', addressTo: `wallet-${payoutId.toLowerCase()}`, ...change };
  const signature = options === 'unsigned' ? {} : target.account.signatureFields(invented, options);
  const { amount, addressTo } = invented;
  return target.account.invent(payoutId, { paymentId: '6', amount, addressTo, ...signature, ...change });
}

/** With what the options say: a key that the attacker has, or by itself valid and out of its time. */
const signedWith = (options: SignOptions, reason: Reason): Attack =>
  row(`signed with ${JSON.stringify(options)}`, reason, async (target) => invent(target, options));

/** The target's own signature, changed. */
const resigned = (name: string, change: (signature: string, target: Target) => string | Promise<string>): Attack =>
  row(name, 'bad_signature', async (target) => {
    const { account, payoutId } = target;
    const { sig = '', sigRest = '' } = await account.record(payoutId);
    const changed = await change(sig + sigRest, target);
    await account.set(payoutId, { sig: changed.slice(0, 64), sigRest: changed.slice(64) });
  });

/** A payout of the other account, which the attacker moves. */
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
  // Another environment, of the same keys and account; and none, as an earlier version signed.
  signedWith({ audience: 'staging' }, 'wrong_audience'),
  signedWith({ audience: undefined }, 'no_audience'),
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

/** Two payouts of one producer whose signatures change places. */
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
