import type { PayoutInput } from '../../../src/ledger/payout.js';
import { row, type Attack, type Reason } from '../support/attack.js';

/** Fields of a queued payout that the attacker alters, removes or adds. */

const FULL: Partial<PayoutInput> = { symbol: 'USD', reference: 'INV 77', metadata: { order: 77, list: [1, 'b'] } };
const LATER: Partial<PayoutInput> = { notBefore: new Date(Date.now() + 500).toISOString() };

/** @param value - the text instead, or what comes behind the one that is there: `+…`; test/control/intents has others */
function altered(field: string, value: string | ((before: string) => string), reason: Reason, input = FULL): Attack {
  const sign = field === 'requestedBy' ? { requestedBy: 'Alice' } : {};
  const attack: Attack['attack'] = async ({ account, payoutId }) => {
    const before = (await account.record(payoutId))[field] ?? '';
    await account.set(payoutId, { [field]: typeof value === 'string' ? value.replace(/^\+/, before) : value(before) });
    // BullMQ takes no delay that is no number: the worker's own job is never due.
    if (field === 'notBefore') await account.ring(payoutId);
  };
  return row(`${field} altered: ${typeof value === 'string' ? JSON.stringify(value) : String(value)}`, reason, attack, {
    input,
    sign,
  });
}

const removed = (fields: string, reason: Reason, input = FULL): Attack =>
  row(`without ${fields}`, reason, async ({ account, payoutId }) => account.unset(payoutId, ...fields.split(' ')), {
    input,
  });

export const ALTERED: readonly Attack[] = [
  altered('addressTo', 'wallet-thief000000000000000000000000000000', 'bad_signature'),
  altered('addressTo', '+ ', 'fields'),
  altered('amount', '12.50', 'bad_signature'),
  altered('amount', '-5', 'fields'),
  altered('paymentId', '1', 'bad_signature'),
  altered('paymentId', '0x6', 'fields'),
  altered('symbol', 'EUR', 'bad_signature'),
  removed('symbol', 'bad_signature'),
  altered('symbol', 'EUR', 'bad_signature', {}),
  altered('reference', 'INV 78', 'bad_signature'),
  // The same JSON in other bytes.
  altered('metadata', (before) => before.replace(':', ': '), 'bad_signature'),
  altered('notBefore', '2020-01-01T00:00:00.000Z', 'bad_signature', LATER),
  altered('requestedBy', 'Mallory', 'bad_signature'),
  removed('key sig sigRest iat exp', 'unsigned'),
  altered('aud', 'staging', 'wrong_audience'),
  // As of an earlier version.
  removed('aud', 'no_audience'),
  removed('exp', 'fields'),
  altered('exp', (before) => before.replace(/^\d{4}/, '2999'), 'bad_signature'),
  altered('iat', (before) => new Date(Date.parse(before) - 1000).toISOString(), 'bad_signature'),
  altered('key', 'constructor', 'unknown_key'),
  altered('reference', '+\naddressTo=wallet-thief', 'fields'),
  altered('key', '+\u0000', 'fields'),
];

const set = (fields: Readonly<Record<string, string>>, expect: Attack['expect']): Attack =>
  row(`set ${JSON.stringify(fields)}`, expect, async ({ account, payoutId }) => account.set(payoutId, fields));

/** What is not signed: it decides about order and what is shown, and moves no money. */
export const NOT_SIGNED: readonly Attack[] = [
  set({ priority: '1', batch: 'other', round: '7' }, 'paid as signed'),
  row('the two parts of the signature joined', 'paid as signed', async ({ account, payoutId }) => {
    const { sig = '', sigRest = '' } = await account.record(payoutId);
    await account.set(payoutId, { sig: sig + sigRest });
    await account.unset(payoutId, 'sigRest');
  }),
  // Of a payout that was never sent.
  set({ attempt: '5' }, 'paid as signed'),
  set({ notBefore: '2999-01-01T00:00:00.000Z' }, 'waits'),
];
