import { row, type Attack, type Reached, type Target } from '../support/attack.js';
import { signAct, type KeyName } from '../support/signers.js';

/** Payouts that were sent, or decided about, and that the attacker wants to be sent again. */

const revived = (
  name: string,
  from: Reached,
  change: Readonly<Record<string, string>> = {},
  expect: Attack['expect'] = 'sent_before',
): Attack => row(name, expect, async ({ account, payoutId }) => account.revive(payoutId, change), { from });

/** An act in the record that does not count. The account's breaker is in nobody's way, and the payout was not paid. */
const withAct = (name: string, make: (target: Target) => Promise<string> | string): Attack =>
  row(
    `resend with ${name}`,
    'sent_before',
    async (target) => target.account.revive(target.payoutId, { act: await make(target) }),
    { from: 'not sent' },
  );

type Change = Parameters<Target['account']['resendAct']>[1];

/** An act to resend that someone signed so. */
const actBy = (key: KeyName, change: Change = {}): Attack =>
  withAct(`the act of ${key} with ${JSON.stringify(change)}`, async ({ account, payoutId }) =>
    account.resendAct(payoutId, { key, ...change }),
  );

const paymentOf = ({ payoutId, input: { paymentId, amount, addressTo } }: Target) => ({
  ...{ payoutId, paymentId, amount, addressTo },
});

/** What tells of the sends of a payout. */
const HISTORY = ['tokens', 'h1', 'h2', 'h3', 'told', 'txhash', 'fee', 'place', 'queuedSince'];
const SENT = { from: 'completed' } as const;

export const REVIVED: readonly Attack[] = [
  ...(['completed', 'failed', 'rejected', 'unknown', 'not sent'] as const).map((from) =>
    revived(`${from} set back to queued`, from),
  ),
  revived('completed set back to queued, attempt raised', 'completed', { attempt: '7' }),
  row(
    'completed set back to queued, tokens and history removed',
    'sent_before',
    async ({ account, payoutId }) => {
      await account.unset(payoutId, ...HISTORY);
      await account.revive(payoutId, { n: '1' });
    },
    SENT,
  ),
  row(
    'paid payout with a newer signature of the same producer',
    'sent_before',
    async (target) => {
      const signature = target.account.signatureFields(paymentOf(target), { days: [0, 0.5] });
      await target.account.revive(target.payoutId, signature);
    },
    SENT,
  ),
  actBy('olga', { attempt: 2 }),
  actBy('olga', { intent: '0'.repeat(64) }),
  actBy('olga', { days: [-2, -1] }),
  ...(['shop', 'stolen', 'foreign'] as const).map((key) => actBy(key)),
  withAct('an act for another payout', async ({ account, payoutId }) =>
    account.resendAct(payoutId, { payoutId: `${payoutId}-x` }),
  ),
  withAct('an act for another account', async ({ account, payoutId }) => {
    const intent = await account.intentHash(payoutId);
    return signAct(account.platformId + 1, { act: 'resend', payoutId, intent, attempt: 1 });
  }),
  withAct('an act to resume', ({ account }) => signAct(account.platformId, { act: 'resume' })),
  withAct('an act whose attempt was altered', async ({ account, payoutId }) =>
    (await account.resendAct(payoutId, { attempt: 2 })).replace('"attempt":2', '"attempt":1'),
  ),
  // A cancellation is no signed statement: the payout is signed, unaltered, and was never sent.
  revived('cancelled set back to queued', 'cancelled', {}, 'paid as signed'),
  row(
    'resend with the act that an operator signed for it',
    'paid as signed',
    async ({ account, payoutId }) => account.revive(payoutId, { act: await account.resendAct(payoutId) }),
    { from: 'not sent' },
  ),
];

/** Each has an account of its own, which stops where the journal knows the number as sent. */
export const STOPPING: readonly Attack[] = [
  revived('completed set back to queued, attempt lowered', 'completed', { attempt: '0' }, 'stopped'),
  revived('attempt of a paid payout set below zero', 'completed', { attempt: '-3' }, 'fields'),
];
