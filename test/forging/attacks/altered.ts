import type { PayoutInput } from '../../../src/ledger/payout.js';
import { tampered, type Attack, type Reason } from '../support/attack.js';

/** Fields of a queued payout that the attacker alters, removes or adds. */

const FULL: Partial<PayoutInput> = { symbol: 'USD', reference: 'INV 77', metadata: { order: 77, list: [1, 'b'] } };
const LATER: Partial<PayoutInput> = { notBefore: new Date(Date.now() + 500).toISOString() };
/** A configuration can be wrong as well. */
const IN_GOOD_FAITH: readonly Reason[] = ['unknown_key', 'wrong_audience', 'no_audience', 'unsigned'];

function altered(
  name: string,
  field: string,
  value: string | ((before: string) => string),
  reason: Reason = 'bad_signature',
  input = FULL,
): Attack {
  return {
    ...{ name, input, ...tampered(reason), isTampering: !IN_GOOD_FAITH.includes(reason) },
    sign: field === 'requestedBy' ? { requestedBy: 'Alice' } : {},
    attack: async ({ account, payoutId }) => {
      const before = (await account.record(payoutId))[field] ?? '';
      await account.set(payoutId, { [field]: typeof value === 'string' ? value : value(before) });
      // BullMQ takes no delay that is no number: the worker's own job is never due.
      if (field === 'notBefore') await account.ring(payoutId);
    },
  };
}

function removed(name: string, fields: string, reason: Reason = 'bad_signature', input = FULL): Attack {
  return {
    ...{ name, input, ...tampered(reason), isTampering: !IN_GOOD_FAITH.includes(reason) },
    attack: async ({ account, payoutId }) => account.unset(payoutId, ...fields.split(' ')),
  };
}

const SIGNED_TEXTS = ['addressTo', 'amount', 'symbol', 'reference', 'iat', 'exp', 'key'] as const;
const plus = (text: string) => (before: string) => before + text;

export const ALTERED: readonly Attack[] = [
  altered('address replaced', 'addressTo', 'wallet-thief000000000000000000000000000000'),
  altered('address in another case', 'addressTo', (before) => before.toUpperCase()),
  altered('space behind the address', 'addressTo', plus(' '), 'fields'),
  altered('destination tag added', 'addressTo', plus(':1')),
  altered('amount raised', 'amount', '1250'),
  altered('amount 12.5 → 12.50', 'amount', '12.50'),
  altered('space behind the amount', 'amount', '12.5 ', 'fields'),
  altered('amount as 1.25e1', 'amount', '1.25e1', 'fields'),
  altered('amount below zero', 'amount', '-5', 'fields'),
  altered('payment id replaced', 'paymentId', '1'),
  altered('payment id 6 → 6.0', 'paymentId', '6.0', 'fields'),
  altered('payment id as 0x6', 'paymentId', '0x6', 'fields'),
  altered('symbol replaced', 'symbol', 'EUR'),
  altered('symbol emptied', 'symbol', '', 'fields'),
  removed('symbol removed', 'symbol'),
  altered('symbol added', 'symbol', 'EUR', 'bad_signature', {}),
  altered('reference replaced', 'reference', 'INV 78'),
  removed('reference removed', 'reference'),
  altered('metadata replaced', 'metadata', '{"order":78}'),
  altered('metadata: the same JSON in other bytes', 'metadata', (before) => before.replace(':', ': ')),
  removed('metadata removed', 'metadata'),
  altered('notBefore set to the past', 'notBefore', '2020-01-01T00:00:00.000Z', 'bad_signature', LATER),
  altered('notBefore that is no time', 'notBefore', 'now', 'bad_signature', LATER),
  removed('notBefore removed', 'notBefore', 'bad_signature', LATER),
  altered('requestedBy replaced', 'requestedBy', 'Mallory'),
  removed('signature removed', 'key sig sigRest iat exp', 'unsigned'),
  altered('audience replaced', 'aud', 'staging', 'wrong_audience'),
  altered('a line break in the audience', 'aud', plus('\nplatformId=1'), 'wrong_audience'),
  removed('audience removed, as of an earlier version', 'aud', 'no_audience'),
  removed('half of the signature removed', 'sigRest'),
  removed('time of expiry removed', 'exp', 'fields'),
  altered('time of expiry moved', 'exp', (before) => before.replace(/^\d{4}/, '2999')),
  altered('time of issue moved by a second', 'iat', (before) => new Date(Date.parse(before) - 1000).toISOString()),
  altered('key named after a property of objects', 'key', 'constructor', 'unknown_key'),
  ...SIGNED_TEXTS.flatMap((field) => [
    altered(`a line break and another field in ${field}`, field, plus('\naddressTo=wallet-thief'), 'fields'),
    altered(`a control character in ${field}`, field, plus('\u0000'), 'fields'),
  ]),
  altered('a line break in requestedBy', 'requestedBy', 'Alice\nissuedAt=2020-01-01T00:00:00.000Z', 'fields'),
  altered('a line break in notBefore', 'notBefore', plus('\n'), 'fields', LATER),
];

/** What is not signed: it decides about order and what is shown, and moves no money. */
export const NOT_SIGNED: readonly Attack[] = [
  {
    name: 'priority, batch and requeue count altered',
    attack: async ({ account, payoutId }) => account.set(payoutId, { priority: '1', batch: 'other', round: '7' }),
    expect: 'paid once as signed',
  },
  {
    name: 'the two parts of the signature joined',
    attack: async ({ account, payoutId }) => {
      const { sig = '', sigRest = '' } = await account.record(payoutId);
      await account.set(payoutId, { sig: sig + sigRest });
      await account.unset(payoutId, 'sigRest');
    },
    expect: 'paid once as signed',
  },
  {
    name: 'attempt of a payout that was never sent raised',
    attack: async ({ account, payoutId }) => account.set(payoutId, { attempt: '5' }),
    expect: 'paid once as signed',
  },
  {
    name: 'notBefore moved far ahead',
    attack: async ({ account, payoutId }) => account.set(payoutId, { notBefore: '2999-01-01T00:00:00.000Z' }),
    expect: 'waits',
  },
];
