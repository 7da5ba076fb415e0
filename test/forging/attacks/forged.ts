import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { signPayout, malleable, DAY_MS, type SignOptions } from '../support/signers.js';
import type { Attack, Target } from '../support/attack.js';
import type { Reason } from '../support/outcome.js';

/** Payouts that the attacker invents, copies, or signs with a key that may not. */

const TAMPERED = { expect: 'held', isTampering: true } as const;

/** A payout of the attacker's own, to his own address. */
function invention({ payoutId }: Target): { payoutId: string; paymentId: number; amount: string; addressTo: string } {
  return {
    payoutId: `${payoutId}-thief`,
    paymentId: 6,
    amount: '99',
    addressTo: `wallet-thief${payoutId.toLowerCase()}`,
  };
}

function textFields(invented: ReturnType<typeof invention>): Record<string, string> {
  const { paymentId, amount, addressTo } = invented;
  return { paymentId: String(paymentId), amount, addressTo };
}

/** Signed with a key that the attacker has, or by itself valid and out of its time. */
function signedWith(name: string, options: SignOptions, reason: Reason, isTampering = false): Attack {
  return {
    ...{ name, reason, isTampering, expect: 'held' },
    attack: async (target) => {
      const invented = invention(target);
      const signature = target.account.signatureFields(invented, options);
      await target.account.invent(invented.payoutId, { ...textFields(invented), ...signature });
      return invented.payoutId;
    },
  };
}

/** The target's own signature, changed. */
function resigned(name: string, change: (signature: string, target: Target) => string | Promise<string>): Attack {
  return {
    ...{ name, reason: 'bad_signature', ...TAMPERED },
    attack: async (target) => {
      const { account, payoutId } = target;
      const { sig = '', sigRest = '' } = await account.record(payoutId);
      const changed = await change(sig + sigRest, target);
      await account.set(payoutId, { sig: changed.slice(0, 64), sigRest: changed.slice(64) });
    },
  };
}

export const FORGED: readonly Attack[] = [
  {
    ...{ name: 'payout invented without a signature', expect: 'held', reason: 'unsigned' },
    attack: async (target) => {
      const invented = invention(target);
      await target.account.invent(invented.payoutId, textFields(invented));
      return invented.payoutId;
    },
  },
  {
    ...{ name: 'payout invented with a signature of random bytes', reason: 'bad_signature', ...TAMPERED },
    attack: async (target) => {
      const invented = invention(target);
      const signature = target.account.signatureFields(invented);
      await target.account.invent(invented.payoutId, { ...textFields(invented), ...signature, sig: 'A'.repeat(64) });
      return invented.payoutId;
    },
  },
  {
    ...{ name: 'payout copied under a new id', reason: 'bad_signature', ...TAMPERED },
    attack: async ({ account, payoutId }) => {
      const copy = `${payoutId}-copy`;
      await account.invent(copy, await account.record(payoutId));
      return copy;
    },
  },
  {
    ...{ name: 'whole record copied from another account', reason: 'bad_signature', ...TAMPERED },
    attack: async ({ account, other, payoutId, input }) => {
      const elsewhere = `${payoutId}-else`;
      await other.enqueue({ ...input, payoutId: elsewhere, addressTo: `${input.addressTo}else` });
      await account.invent(elsewhere, await other.record(elsewhere));
      return elsewhere;
    },
  },
  {
    ...{ name: 'record renamed to a key of another account', reason: 'bad_signature', ...TAMPERED },
    attack: async ({ account, other, payoutId, input }) => {
      const moved = `${payoutId}-moved`;
      await other.enqueueAs({ ...input, payoutId: moved, addressTo: `${input.addressTo}moved` });
      await account.redis.rename(other.keys.payout(moved), account.keys.payout(moved));
      await account.revive(moved);
      return moved;
    },
  },
  {
    ...{ name: "amount below zero, signed with a producer's key", reason: 'fields', ...TAMPERED },
    attack: async (target) => {
      const invented = { ...invention(target), amount: '-5' };
      const signature = target.account.signatureFields(invented);
      await target.account.invent(invented.payoutId, { ...textFields(invented), ...signature });
      return invented.payoutId;
    },
  },
  signedWith('signed by a revoked key', { key: 'stolen' }, 'revoked_key', false),
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
    ...{ name: 'signed for another environment, and this one named beside it', reason: 'bad_signature', ...TAMPERED },
    attack: async (target) => {
      const invented = invention(target);
      const signature = target.account.signatureFields(invented, { audience: 'staging' });
      await target.account.invent(invented.payoutId, { ...textFields(invented), ...signature, aud: TEST_AUDIENCE });
      return invented.payoutId;
    },
  },
  {
    ...{ name: 'whole record copied from another environment', reason: 'wrong_audience', expect: 'held' },
    attack: async ({ account, other, payoutId, input }) => {
      const elsewhere = `${payoutId}-staging`;
      const theirs = { ...input, payoutId: elsewhere, addressTo: `${input.addressTo}staging` };
      // Staging's account has the same number.
      await other.enqueueAs(theirs, { platformId: account.platformId, audience: 'staging' });
      await account.invent(elsewhere, await other.record(elsewhere));
      await other.redis.del(other.keys.payout(elsewhere));
      return elsewhere;
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
    const last = signature.at(-1) ?? '';
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    return signature.slice(0, -1) + (alphabet[(alphabet.indexOf(last) + 1) % 64] ?? '');
  }),
  resigned("an operator's act as signature", async (_, { account, payoutId }) => {
    const { signature } = JSON.parse(await account.resendAct(payoutId)) as { signature: string };
    return signature;
  }),
  resigned('the signature of another payout of the same producer', (_, { account, payoutId, input }) => {
    const fields = {
      payoutId: `${payoutId}-x`,
      paymentId: input.paymentId,
      amount: input.amount,
      addressTo: input.addressTo,
    };
    return signPayout(account.platformId, fields).signature;
  }),
  {
    ...{ name: 'record deleted and put in again with another amount', reason: 'bad_signature', ...TAMPERED },
    attack: async ({ account, payoutId }) => {
      const record = await account.record(payoutId);
      await account.invent(payoutId, { ...record, amount: '125' });
    },
  },
];

/** Two payouts of one producer whose signatures change places. */
export const SWAPPED: Attack = {
  ...{ name: 'signatures of two payouts swapped', reason: 'bad_signature', ...TAMPERED },
  attack: async ({ account, payoutId, input }) => {
    const second = `${payoutId}-2`;
    await account.enqueueAs({ ...input, payoutId: second, addressTo: `${input.addressTo}2` });
    const [a, b] = [await account.record(payoutId), await account.record(second)];
    const parts = ({ sig = '', sigRest = '', iat = '', exp = '' }: Record<string, string>): Record<string, string> => ({
      ...{ sig, sigRest, iat, exp },
    });
    await account.set(payoutId, parts(b));
    await account.set(second, parts(a));
    return second;
  },
};
