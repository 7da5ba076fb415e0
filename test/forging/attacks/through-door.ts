import type { PayoutInput } from '../../../src/ledger/payout.js';
import type { Attack, Target } from '../support/attack.js';
import type { Reason } from '../support/outcome.js';
import { DAY_MS, signPayout, type SignOptions } from '../support/signers.js';

/** What someone does who has a token of the HTTP door with every right, and no producer's key. */

/** Sends a request to the door of the target's account. */
export type AskDoor = (
  target: Target,
  method: string,
  path: string,
  body?: unknown,
) => Promise<{ readonly status: number; readonly body: { readonly code?: string } }>;

export interface DoorAttack extends Omit<Attack, 'attack' | 'sign'> {
  /** @returns the payoutId that is to be paid, if it is another than the target's */
  attack(target: Target, ask: AskDoor): Promise<unknown>;
}

const OWN = {
  ...{ paymentId: 6, amount: '99' },
  addressTo: 'wallet-thief000000000000000000000000',
};

function thiefs({ payoutId }: Target): typeof OWN & { readonly payoutId: string } {
  return { ...OWN, payoutId: `${payoutId}-thief`, addressTo: `wallet-thief${payoutId.toLowerCase()}` };
}

function isRefused(answer: { readonly status: number }, ...statuses: readonly number[]): void {
  if (!statuses.includes(answer.status))
    throw new Error(`the door answered ${answer.status}: ${JSON.stringify(answer)}`);
}

/** The target's payout is signed, and is paid as it was signed. */
const UNTOUCHED = { expect: 'paid once as signed' } as const;

/** A payout of the thief's own, with some signature: the door takes it, the worker holds it. */
function signedBy(name: string, options: SignOptions, reason: Reason, isTampering: boolean): DoorAttack {
  return {
    ...{ name, reason, isTampering, expect: 'held' },
    attack: async (target, ask) => {
      const payout = thiefs(target);
      const signature = signPayout(target.account.platformId, payout, options);
      isRefused(await ask(target, 'POST', '/v1/payouts', { ...payout, ...signature }), 201);
      return payout.payoutId;
    },
  };
}

/** The signature of the target's payout, on another one. */
function copied(name: string, change: Partial<PayoutInput>): DoorAttack {
  return {
    ...{ name, reason: 'bad_signature', isTampering: true, expect: 'held' },
    attack: async (target, ask) => {
      const { signed } = await target.account.payout(target.payoutId);
      const { key, signature, issuedAt, expiresAt, audience } = signed ?? {};
      const payout = { ...target.input, payoutId: `${target.payoutId}-copy`, ...change };
      isRefused(
        await ask(target, 'POST', '/v1/payouts', { ...payout, key, signature, issuedAt, expiresAt, audience }),
        201,
      );
      return payout.payoutId;
    },
  };
}

/** A change of the target's own payout, which the ledger refuses. */
function changed(name: string, change: Partial<PayoutInput>, isList = false): DoorAttack {
  return {
    ...{ name, ...UNTOUCHED },
    attack: async (target, ask) => {
      const { signed } = await target.account.payout(target.payoutId);
      const { key, signature, issuedAt, expiresAt, audience } = signed ?? {};
      const payout = { ...target.input, ...change, key, signature, issuedAt, expiresAt, audience };
      isRefused(await ask(target, 'POST', '/v1/payouts', isList ? [payout] : payout), 409);
    },
  };
}

export const THROUGH_DOOR: readonly DoorAttack[] = [
  {
    ...{ name: 'an unsigned payout', ...UNTOUCHED },
    attack: async (target, ask) => {
      isRefused(await ask(target, 'POST', '/v1/payouts', thiefs(target)), 422);
      isRefused(await ask(target, 'POST', '/v1/payouts', [thiefs(target)]), 422);
      isRefused(await ask(target, 'GET', `/v1/payouts/${target.payoutId}-thief`), 404);
    },
  },
  {
    ...{ name: 'an unsigned payout behind a signed one', ...UNTOUCHED },
    attack: async (target, ask) => {
      const signed = {
        ...thiefs(target),
        ...signPayout(target.account.platformId, thiefs(target), { key: 'foreign' }),
      };
      const bare = { ...thiefs(target), payoutId: `${target.payoutId}-bare` };
      isRefused(await ask(target, 'POST', '/v1/payouts', [signed, bare]), 422);
      isRefused(await ask(target, 'GET', `/v1/payouts/${target.payoutId}-thief`), 404);
    },
  },
  {
    ...{ name: 'a signature that is null, empty or an object', ...UNTOUCHED },
    attack: async (target, ask) => {
      for (const signature of [null, '', {}, []]) {
        isRefused(await ask(target, 'POST', '/v1/payouts', { ...thiefs(target), signature }), 400, 422);
      }
    },
  },
  {
    ...{ name: 'the fields of a signature without it, and the stored form of one', ...UNTOUCHED },
    attack: async (target, ask) => {
      const { key, issuedAt, expiresAt } = signPayout(target.account.platformId, thiefs(target));
      isRefused(await ask(target, 'POST', '/v1/payouts', { ...thiefs(target), key, issuedAt, expiresAt }), 422);
      const { signed } = await target.account.payout(target.payoutId);
      isRefused(
        await ask(target, 'POST', '/v1/payouts', { ...thiefs(target), signature: signed?.signature, signed }),
        400,
      );
    },
  },
  changed('the address of a signed payout', { addressTo: OWN.addressTo }),
  changed('the amount of a signed payout, in a list', { amount: '1250' }, true),
  changed('the currency of a signed payout', { paymentId: 1 }),
  copied('the signature of another payout', {}),
  copied('the signature of another payout, with an own address', { addressTo: OWN.addressTo }),
  signedBy('signed with a key that no keyring has', { key: 'foreign' }, 'unknown_key', false),
  signedBy(
    'signed with a key of its own, in the name of the producer',
    { key: 'foreign', as: 'shop' },
    'bad_signature',
    true,
  ),
  signedBy("signed with an operator's key", { key: 'olga' }, 'wrong_role', true),
  signedBy('signed with a revoked key', { key: 'stolen' }, 'revoked_key', false),
  signedBy('signed for another account', { platformId: 1 }, 'bad_signature', true),
  signedBy('signed for another environment', { audience: 'staging' }, 'wrong_audience', false),
  signedBy('signed eight days ago', { issuedAt: Date.now() - 8 * DAY_MS }, 'expired', false),
  {
    ...{ name: 'paths of operators', ...UNTOUCHED },
    attack: async (target, ask) => {
      for (const act of ['release', 'retry', 'resolve', 'approve', 'pause', 'resume']) {
        isRefused(await ask(target, 'POST', `/v1/payouts/${target.payoutId}/${act}`, {}), 404);
        isRefused(await ask(target, 'POST', `/v1/${act}`, {}), 404);
      }
    },
  },
  {
    ...{ name: 'a payout of another account, by its id and by a path', ...UNTOUCHED },
    attack: async (target, ask) => {
      const id = 'only-there';
      await target.other.enqueue({ ...OWN, payoutId: id, addressTo: `wallet-there${target.payoutId.toLowerCase()}` });
      for (const path of [
        id,
        `..%2f${id}`,
        `${id}%00`,
        encodeURIComponent(`{payouts:${target.other.platformId}}:payout:${id}`),
      ]) {
        isRefused(await ask(target, 'GET', `/v1/payouts/${path}`), 404);
        isRefused(await ask(target, 'POST', `/v1/payouts/${path}/cancel`, {}), 404);
      }
    },
  },
];
