import type { PayoutInput } from '../../../src/ledger/payout.js';
import { tampered, type Attack, type Reason, type Target } from '../support/attack.js';
import { DAY_MS, signPayout, type SignOptions } from '../support/signers.js';

/** What someone does who has a token of the HTTP door with every right, and no producer's key. */

/** Sends a request to the door of the target's account. @throws Error unless it answers with one of the statuses */
export type AskDoor = (
  statuses: number | readonly number[],
  target: Target,
  method: string,
  path: string,
  body?: unknown,
) => Promise<void>;

export interface DoorAttack extends Omit<Attack, 'attack' | 'sign'> {
  /** @returns the payoutId that is to be paid, if it is another than the target's */
  attack(target: Target, ask: AskDoor): Promise<unknown>;
}

const PATH = '/v1/payouts';
const THIEF = 'wallet-thief000000000000000000000000';

function thiefs({ payoutId }: Target) {
  const addressTo = `wallet-thief${payoutId.toLowerCase()}`;
  return { paymentId: 6, amount: '99', payoutId: `${payoutId}-thief`, addressTo };
}

/** The signature of the target's payout, as a request has it. */
async function signatureOf({ account, payoutId }: Target): Promise<object> {
  const { key, signature, issuedAt, expiresAt, audience } = (await account.payout(payoutId)).signed ?? {};
  return { key, signature, issuedAt, expiresAt, audience };
}

/** The target's payout is signed, and is paid as it was signed. */
const untouched = (name: string, attack: DoorAttack['attack']): DoorAttack => ({
  ...{ name, attack, expect: 'paid once as signed' },
});

/** A payout of the thief's own, with some signature: the door takes it, the worker holds it. */
function signedBy(name: string, options: SignOptions, reason: Reason, isTampering = false): DoorAttack {
  return {
    ...{ name: `signed ${name}`, reason, isTampering, expect: 'held' },
    attack: async (target, ask) => {
      const payout = thiefs(target);
      await ask(201, target, 'POST', PATH, { ...payout, ...signPayout(target.account.platformId, payout, options) });
      return payout.payoutId;
    },
  };
}

/** The signature of the target's payout, on another one. */
function copied(name: string, change: Partial<PayoutInput>): DoorAttack {
  return {
    ...{ name: `the signature of another payout${name}`, ...tampered('bad_signature') },
    attack: async (target, ask) => {
      const payout = { ...target.input, payoutId: `${target.payoutId}-copy`, ...change };
      await ask(201, target, 'POST', PATH, { ...payout, ...(await signatureOf(target)) });
      return payout.payoutId;
    },
  };
}

/** A change of the target's own payout, which the ledger refuses. */
const changed = (name: string, change: Partial<PayoutInput>, isList = false): DoorAttack =>
  untouched(name, async (target, ask) => {
    const payout = { ...target.input, ...change, ...(await signatureOf(target)) };
    await ask(409, target, 'POST', PATH, isList ? [payout] : payout);
  });

export const THROUGH_DOOR: readonly DoorAttack[] = [
  untouched('an unsigned payout', async (target, ask) => {
    await ask(422, target, 'POST', PATH, thiefs(target));
    await ask(422, target, 'POST', PATH, [thiefs(target)]);
    await ask(404, target, 'GET', `${PATH}/${target.payoutId}-thief`);
  }),
  untouched('an unsigned payout behind a signed one', async (target, ask) => {
    const payout = thiefs(target);
    const signed = { ...payout, ...signPayout(target.account.platformId, payout, { key: 'foreign' }) };
    await ask(422, target, 'POST', PATH, [signed, { ...payout, payoutId: `${target.payoutId}-bare` }]);
    await ask(404, target, 'GET', `${PATH}/${target.payoutId}-thief`);
  }),
  untouched('a signature that is null, empty or an object', async (target, ask) => {
    for (const signature of [null, '', {}, []]) {
      await ask([400, 422], target, 'POST', PATH, { ...thiefs(target), signature });
    }
  }),
  untouched('the fields of a signature without it, and the stored form of one', async (target, ask) => {
    const { key, issuedAt, expiresAt } = signPayout(target.account.platformId, thiefs(target));
    await ask(422, target, 'POST', PATH, { ...thiefs(target), key, issuedAt, expiresAt });
    const { signed } = await target.account.payout(target.payoutId);
    await ask(400, target, 'POST', PATH, { ...thiefs(target), signature: signed?.signature, signed });
  }),
  changed('the address of a signed payout', { addressTo: THIEF }),
  changed('the amount of a signed payout, in a list', { amount: '1250' }, true),
  changed('the currency of a signed payout', { paymentId: 1 }),
  copied('', {}),
  copied(', with an own address', { addressTo: THIEF }),
  signedBy('with a key that no keyring has', { key: 'foreign' }, 'unknown_key'),
  signedBy('with a key of its own, in the name of the producer', { key: 'foreign', as: 'shop' }, 'bad_signature', true),
  signedBy("with an operator's key", { key: 'olga' }, 'wrong_role', true),
  signedBy('with a revoked key', { key: 'stolen' }, 'revoked_key'),
  signedBy('for another account', { platformId: 1 }, 'bad_signature', true),
  signedBy('for another environment', { audience: 'staging' }, 'wrong_audience'),
  signedBy('eight days ago', { issuedAt: Date.now() - 8 * DAY_MS }, 'expired'),
  untouched('paths of operators', async (target, ask) => {
    for (const act of ['release', 'retry', 'resolve', 'approve', 'pause', 'resume']) {
      await ask(404, target, 'POST', `${PATH}/${target.payoutId}/${act}`, {});
      await ask(404, target, 'POST', `/v1/${act}`, {});
    }
  }),
  untouched('a payout of another account, by its id and by a path', async (target, ask) => {
    const [payoutId, addressTo] = ['only-there', `wallet-there${target.payoutId.toLowerCase()}`];
    await target.other.enqueue({ payoutId, paymentId: 6, amount: '99', addressTo });
    const key = encodeURIComponent(target.other.keys.payout(payoutId));
    for (const path of [payoutId, `..%2f${payoutId}`, `${payoutId}%00`, key]) {
      await ask(404, target, 'GET', `${PATH}/${path}`);
      await ask(404, target, 'POST', `${PATH}/${path}/cancel`, {});
    }
  }),
];
