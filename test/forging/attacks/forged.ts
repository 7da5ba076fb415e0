import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { tampered, type Attack, type Reason, type Target } from '../support/attack.js';
import { DAY_MS, malleable, signPayout, type SignOptions } from '../support/signers.js';

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

/** Signed with a key that the attacker has, or by itself valid and out of its time. */
function signedWith(name: string, options: SignOptions, reason: Reason, isTampering = false): Attack {
  return { name, expect: 'held', reason, isTampering, attack: async (target) => invent(target, options) };
}

/** The target's own signature, changed. */
function resigned(name: string, change: (signature: string, target: Target) => string | Promise<string>): Attack {
  return {
    ...{ name, ...tampered('bad_signature') },
    attack: async (target) => {
      const { account, payoutId } = target;
      const { sig = '', sigRest = '' } = await account.record(payoutId);
      const changed = await change(sig + sigRest, target);
      await account.set(payoutId, { sig: changed.slice(0, 64), sigRest: changed.slice(64) });
    },
  };
}

/** A payout of the other account, which the attacker moves. */
const elsewhere = ({ payoutId, input }: Target, name: string) => ({
  ...{ ...input, payoutId: `${payoutId}-${name}`, addressTo: `${input.addressTo}${name}` },
});

export const FORGED: readonly Attack[] = [
  {
    ...{ name: 'payout invented without a signature', expect: 'held', reason: 'unsigned' },
    attack: async (target) => invent(target, 'unsigned'),
  },
  {
    ...{ name: 'payout invented with a signature of random bytes', ...tampered('bad_signature') },
    attack: async (target) => invent(target, {}, { sig: 'A'.repeat(64) }),
  },
  {
    ...{ name: 'payout copied under a new id', ...tampered('bad_signature') },
    attack: async ({ account, payoutId }) => account.invent(`${payoutId}-copy`, await account.record(payoutId)),
  },
  {
    ...{ name: 'whole record copied from another account', ...tampered('bad_signature') },
    attack: async (target) => {
      const theirs = elsewhere(target, 'else');
      await target.other.enqueue(theirs);
      return target.account.invent(theirs.payoutId, await target.other.record(theirs.payoutId));
    },
  },
  {
    ...{ name: 'record renamed to a key of another account', ...tampered('bad_signature') },
    attack: async (target) => {
      const { account, other } = target;
      const moved = elsewhere(target, 'moved');
      await other.enqueueAs(moved);
      await account.redis.rename(other.keys.payout(moved.payoutId), account.keys.payout(moved.payoutId));
      return account.revive(moved.payoutId);
    },
  },
  {
    ...{ name: "amount below zero, signed with a producer's key", ...tampered('fields') },
    attack: async (target) => invent(target, {}, { amount: '-5' }),
  },
  signedWith('signed by a revoked key', { key: 'stolen' }, 'revoked_key'),
  signedWith('signed by a key whose time is over', { key: 'former' }, 'key_not_valid'),
  signedWith('signed by a key whose time has not begun', { key: 'future' }, 'key_not_valid'),
  signedWith("signed by an approver's key", { key: 'ann' }, 'wrong_role', true),
  signedWith("signed by an operator's key", { key: 'olga' }, 'wrong_role', true),
  signedWith("signed by a worker's key", { key: 'wanda' }, 'wrong_role', true),
  signedWith('signed by a key that is not in the keyring', { key: 'foreign' }, 'unknown_key'),
  signedWith("signed by a foreign key under a producer's name", { key: 'foreign', as: 'shop' }, 'bad_signature', true),
  signedWith("signed by one producer under another's name", { key: 'shop-2', as: 'shop' }, 'bad_signature', true),
  signedWith(
    'a key whose time is over, issue dated back, the name of a valid key',
    { key: 'former', as: 'shop', issuedAt: Date.now() - 2 * DAY_MS },
    'bad_signature',
    true,
  ),
  signedWith('issued in the future', { issuedAt: Date.now() + DAY_MS }, 'issued_in_future'),
  signedWith('expired', { issuedAt: Date.now() - 2 * DAY_MS, lifetimeMs: DAY_MS }, 'expired'),
  signedWith('signed for too long', { lifetimeMs: 8 * DAY_MS }, 'lifetime'),
  signedWith(
    'issued before the journal was begun',
    { issuedAt: Date.now() - DAY_MS, lifetimeMs: 6 * DAY_MS },
    'before_birth',
  ),
  signedWith('signed for another environment, of the same keys and account', { audience: 'staging' }, 'wrong_audience'),
  signedWith('signed by an earlier version, for no environment', { audience: undefined }, 'no_audience'),
  {
    ...{ name: 'signed for another environment, and this one named beside it', ...tampered('bad_signature') },
    attack: async (target) => invent(target, { audience: 'staging' }, { aud: TEST_AUDIENCE }),
  },
  {
    ...{ name: 'whole record copied from another environment', reason: 'wrong_audience', expect: 'held' },
    attack: async (target) => {
      const { account, other } = target;
      const theirs = elsewhere(target, 'staging');
      // Staging's account has the same number.
      await other.enqueueAs(theirs, { platformId: account.platformId, audience: 'staging' });
      await account.invent(theirs.payoutId, await other.record(theirs.payoutId));
      await other.redis.del(other.keys.payout(theirs.payoutId));
      return theirs.payoutId;
    },
  },
  signedWith('signed for another account', { platformId: 1 }, 'bad_signature', true),
  resigned('signature cut', (signature) => signature.slice(0, -1)),
  resigned('signature with padding', (signature) => `${signature}==`),
  resigned('signature in base64 of another alphabet', (signature) =>
    Buffer.from(signature, 'base64url').toString('base64'),
  ),
  resigned('signature with S + L', malleable),
  resigned('last character of the signature with spare bits', (signature) => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    return signature.slice(0, -1) + (alphabet[(alphabet.indexOf(signature.at(-1) ?? '') + 1) % 64] ?? '');
  }),
  resigned("an operator's act as signature", async (_, { account, payoutId }) => {
    const { signature } = JSON.parse(await account.resendAct(payoutId)) as { signature: string };
    return signature;
  }),
  resigned('the signature of another payout of the same producer', (_, { account, payoutId, input }) => {
    const { paymentId, amount, addressTo } = input;
    return signPayout(account.platformId, { payoutId: `${payoutId}-x`, paymentId, amount, addressTo }).signature;
  }),
  {
    ...{ name: 'record deleted and put in again with another amount', ...tampered('bad_signature') },
    attack: async ({ account, payoutId }) =>
      account.invent(payoutId, { ...(await account.record(payoutId)), amount: '125' }),
  },
];

/** Two payouts of one producer whose signatures change places. */
export const SWAPPED: Attack = {
  ...{ name: 'signatures of two payouts swapped', ...tampered('bad_signature') },
  attack: async (target) => {
    const { account, payoutId } = target;
    const second = elsewhere(target, '2');
    await account.enqueueAs(second);
    const [a, b] = [await account.record(payoutId), await account.record(second.payoutId)];
    const parts = ({ sig = '', sigRest = '', iat = '', exp = '' }: Fields): Fields => ({ sig, sigRest, iat, exp });
    await account.set(payoutId, parts(b));
    await account.set(second.payoutId, parts(a));
    return second.payoutId;
  },
};
