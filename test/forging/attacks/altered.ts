import type { PayoutInput } from '../../../src/ledger/payout.js';
import { row, type Attack, type Reason } from '../support/attack.js';

/** Fields of a queued payout that the attacker alters or removes; test/control/intents has every field. */

const FULL = {
  input: { symbol: 'USD', reference: 'INV 77', metadata: { order: 77, list: [1, 'b'] } } satisfies Partial<PayoutInput>,
  sign: { requestedBy: 'Alice' },
};

const altered = (field: string, alter: (before: string) => string, reason: Reason): Attack =>
  row(
    `${field} altered: ${String(alter)}`,
    reason,
    async ({ account, payoutId }) =>
      account.set(payoutId, { [field]: alter((await account.record(payoutId))[field] ?? '') }),
    FULL,
  );

const removed = (fields: string, reason: Reason): Attack =>
  row(
    `without ${fields}`,
    reason,
    async ({ account, payoutId }) => account.unset(payoutId, ...fields.split(' ')),
    FULL,
  );

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
  // As of an earlier version.
  removed('aud', 'no_audience'),
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
