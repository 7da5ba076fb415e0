import type { PayoutInput } from '../../../src/ledger/payout.js';
import { row, type Attack, type Reason, type Target } from '../support/attack.js';
import { signPayout, type SignOptions } from '../support/signers.js';

/** What someone does who has a token of the HTTP door with every right, and no producer's key. */

/** Sends a request to the door of the target's account. @throws Error unless it answers with one of the statuses */
export type AskDoor = (
  statuses: number | readonly number[],
  target: Target,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
) => Promise<void>;

/** An attack once there is a door. */
type DoorAttack = (ask: AskDoor) => Attack;
type Asking = (target: Target, ask: AskDoor) => Promise<unknown>;

const doorRow =
  (name: string, expect: Attack['expect'], attack: Asking): DoorAttack =>
  (ask) =>
    row(name, expect, async (target) => attack(target, ask));

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
const untouched = (name: string, attack: Asking): DoorAttack => doorRow(name, 'paid as signed', attack);

/** A payout of the thief's own, with some signature: the door takes it, the worker holds it. */
const signedWith = (options: SignOptions, reason: Reason): DoorAttack =>
  doorRow(`signed with ${JSON.stringify(options)}`, reason, async (target, ask) => {
    const payout = thiefs(target);
    await ask(201, target, 'POST', PATH, { ...payout, ...signPayout(target.account.platformId, payout, options) });
    return payout.payoutId;
  });

/** The signature of the target's payout, on another one. */
const copied = (name: string, change: Partial<PayoutInput>): DoorAttack =>
  doorRow(`the signature of another payout${name}`, 'bad_signature', async (target, ask) => {
    const payout = { ...target.input, payoutId: `${target.payoutId}-copy`, ...change };
    await ask(201, target, 'POST', PATH, { ...payout, ...(await signatureOf(target)) });
    return payout.payoutId;
  });

/** A change of the target's own payout, which the ledger refuses. */
const changed = (name: string, change: Partial<PayoutInput>, isList = false): DoorAttack =>
  untouched(`the ${name} of a signed payout`, async (target, ask) => {
    const payout = { ...target.input, ...change, ...(await signatureOf(target)) };
    await ask(409, target, 'POST', PATH, isList ? [payout] : payout);
  });

export const THROUGH_DOOR: readonly DoorAttack[] = [
  untouched('an unsigned payout', async (target, ask) => {
    for (const body of [thiefs(target), [thiefs(target)]]) await ask(422, target, 'POST', PATH, body);
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
  changed('address', { addressTo: THIEF }),
  changed('amount, in a list,', { amount: '1250' }, true),
  changed('currency', { paymentId: 1 }),
  copied('', {}),
  copied(', with an own address', { addressTo: THIEF }),
  signedWith({ key: 'foreign' }, 'unknown_key'),
  signedWith({ key: 'foreign', as: 'shop' }, 'bad_signature'),
  signedWith({ key: 'olga' }, 'wrong_role'),
  signedWith({ key: 'stolen' }, 'revoked_key'),
  signedWith({ platformId: 1 }, 'bad_signature'),
  signedWith({ audience: 'staging' }, 'wrong_audience'),
  signedWith({ days: [-8, -7] }, 'expired'),
  untouched('paths of operators', async (target, ask) => {
    for (const act of ['release', 'retry', 'resolve', 'approve', 'pause', 'resume']) {
      for (const path of [`${PATH}/${target.payoutId}/${act}`, `/v1/${act}`]) await ask(404, target, 'POST', path, {});
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
