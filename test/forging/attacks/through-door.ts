import { row, type Attack, type Target } from '../support/attack.js';
import { signPayout } from '../support/signers.js';

/** What someone does who has a token of the HTTP door with every right, and no producer's key. */

/** Sends a request to the door of the target's account. @throws Error unless it answers with one of the statuses */
export type AskDoor = (
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

/** The signature of the target's payout, as a request has it. */
async function signatureOf({ account, payoutId }: Target): Promise<object> {
  const { key, signature, issuedAt, expiresAt, audience } = (await account.payout(payoutId)).signed ?? {};
  return { key, signature, issuedAt, expiresAt, audience };
}

/** The attacks once there is a door. What becomes of other signatures the worker decides: see forged.ts. */
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
    await ask(409, target, 'POST', PATH, { ...payout, addressTo: 'wallet-thief000000000000000000000000' });
    await ask(409, target, 'POST', PATH, [{ ...payout, amount: '1250' }]);
  }),
  row('the signature of another payout', 'bad_signature', async (target) => {
    const payout = { ...target.input, payoutId: `${target.payoutId}-copy` };
    await ask(201, target, 'POST', PATH, { ...payout, ...(await signatureOf(target)) });
    return payout.payoutId;
  }),
  row('signed with a key that the keyring does not have', 'unknown_key', async (target) => {
    const payout = thiefs(target);
    const signature = signPayout(target.account.platformId, payout, { key: 'foreign' });
    await ask(201, target, 'POST', PATH, { ...payout, ...signature });
    return payout.payoutId;
  }),
  row('paths of operators', 'paid as signed', async (target) => {
    for (const act of ['release', 'retry', 'resolve', 'approve', 'pause', 'resume']) {
      for (const path of [`${PATH}/${target.payoutId}/${act}`, `/v1/${act}`]) await ask(404, target, 'POST', path, {});
    }
  }),
];
