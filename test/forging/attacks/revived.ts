import type { Attack, Reached, Target } from '../support/attack.js';
import { signAct, signPayout, DAY_MS, type KeyName } from '../support/signers.js';

/** Payouts that were sent, or decided about, and that the attacker wants to be sent again. */

const SENT_BEFORE = { expect: 'held', reason: 'sent_before', isTampering: true } as const;

function revived(
  name: string,
  from: Reached,
  change: Readonly<Record<string, string>>,
  removes: readonly string[] = [],
): Attack {
  return {
    ...{ name, from, ...SENT_BEFORE },
    attack: async ({ account, payoutId }) => {
      if (removes.length > 0) await account.unset(payoutId, ...removes);
      await account.revive(payoutId, change);
    },
  };
}

const SENT_STATES: readonly Reached[] = ['completed', 'failed', 'rejected', 'unknown', 'not sent'];

/** An act in the record that does not count. The account's breaker is in nobody's way, and the payout was not paid. */
function withAct(name: string, make: (target: Target) => Promise<string> | string): Attack {
  return {
    ...{ name, from: 'not sent', ...SENT_BEFORE },
    attack: async (target) => target.account.revive(target.payoutId, { act: await make(target) }),
  };
}

function actOf(key: KeyName, change: { readonly at?: string; readonly expiresAt?: string } = {}) {
  return async ({ account, payoutId }: Target): Promise<string> => account.resendAct(payoutId, { key, ...change });
}

const time = (offsetMs: number): string => new Date(Date.now() + offsetMs).toISOString();

export const REVIVED: readonly Attack[] = [
  ...SENT_STATES.map((from) => revived(`${from} set back to queued`, from, {})),
  revived('completed set back to queued, attempt raised', 'completed', { attempt: '7' }),
  revived('completed set back to queued, tokens and history removed', 'completed', { n: '1' }, [
    ...['tokens', 'h1', 'h2', 'h3', 'told', 'txhash', 'fee', 'place', 'queuedSince'],
  ]),
  revived('rejected set back to queued, attempt raised', 'rejected', { attempt: '2' }),
  revived('unknown set back to queued, attempt raised', 'unknown', { attempt: '3' }),
  {
    ...{
      name: 'paid record deleted and put in again from an old copy, attempt kept',
      from: 'completed',
      ...SENT_BEFORE,
    },
    attack: async ({ account, payoutId }) => {
      const record = await account.record(payoutId);
      await account.invent(payoutId, { ...record, attempt: '1' });
    },
  },
  {
    ...{ name: 'paid payout with a newer signature of the same producer', from: 'completed', ...SENT_BEFORE },
    attack: async ({ account, payoutId, input }) => {
      const { paymentId, amount, addressTo } = input;
      const signature = account.signatureFields({ payoutId, paymentId, amount, addressTo }, { lifetimeMs: DAY_MS / 2 });
      await account.revive(payoutId, signature);
    },
  },
  withAct('resend with an act for another attempt', async ({ account, payoutId }) =>
    account.resendAct(payoutId, { attempt: 2 }),
  ),
  withAct('resend with an act for another payout', async ({ account, payoutId }) =>
    account.resendAct(payoutId, { payoutId: `${payoutId}-x` }),
  ),
  withAct('resend with an act for another intent', async ({ account, payoutId }) =>
    account.resendAct(payoutId, { intent: '0'.repeat(64) }),
  ),
  withAct('resend with an act for another account', async ({ account, payoutId }) => {
    const intent = await account.intentHash(payoutId);
    return signAct(account.platformId + 1, { act: 'resend', payoutId, intent, attempt: 1 });
  }),
  withAct("resend with an act of a producer's key", actOf('shop')),
  withAct("resend with an act of an approver's key", actOf('ann')),
  withAct('resend with an act of a revoked key', actOf('stolen')),
  withAct('resend with an act of a foreign key', actOf('foreign')),
  withAct('resend with an expired act', actOf('olga', { at: time(-2 * DAY_MS), expiresAt: time(-DAY_MS) })),
  withAct('resend with an act of the future', actOf('olga', { at: time(DAY_MS), expiresAt: time(2 * DAY_MS) })),
  withAct('resend with an act for too long', actOf('olga', { expiresAt: time(30 * DAY_MS) })),
  withAct('resend with an act to resume', ({ account }) => signAct(account.platformId, { act: 'resume' })),
  withAct('resend with an act whose attempt was altered', async ({ account, payoutId }) => {
    const act = JSON.parse(await account.resendAct(payoutId, { attempt: 2 })) as Record<string, unknown>;
    return JSON.stringify({ ...act, attempt: 1 });
  }),
  withAct("resend with the producer's signature as an act's", async ({ account, payoutId, input }) => {
    const act = JSON.parse(await account.resendAct(payoutId)) as Record<string, unknown>;
    const { paymentId, amount, addressTo } = input;
    const { signature } = signPayout(account.platformId, { payoutId, paymentId, amount, addressTo });
    return JSON.stringify({ ...act, signature });
  }),
  withAct('resend with an act that is no JSON', () => 'olga says yes'),
  {
    name: 'cancelled set back to queued',
    from: 'cancelled',
    attack: async ({ account, payoutId }) => account.revive(payoutId),
    // A cancellation is no signed statement: the payout is signed, unaltered, and was never sent.
    expect: 'paid once as signed',
  },
  {
    name: 'resend with the act that an operator signed for it',
    from: 'not sent',
    attack: async ({ account, payoutId }) => account.revive(payoutId, { act: await account.resendAct(payoutId) }),
    expect: 'paid once as signed',
  },
];

/** Each stops its account: a number that the journal knows as sent. */
export const STOPPING: readonly Attack[] = [
  {
    name: 'completed set back to queued, attempt lowered',
    from: 'completed',
    attack: async ({ account, payoutId }) => account.revive(payoutId, { attempt: '0' }),
    expect: 'stopped',
    reason: 'objection',
  },
  {
    name: 'completed set back to queued, all but the input removed',
    from: 'completed',
    attack: async ({ account, payoutId }) => {
      const record = await account.record(payoutId);
      const kept = ['paymentId', 'amount', 'addressTo', 'key', 'sig', 'sigRest', 'iat', 'exp', 'aud'];
      const copy = Object.fromEntries(Object.entries(record).filter(([field]) => kept.includes(field)));
      await account.invent(payoutId, copy);
    },
    expect: 'stopped',
    reason: 'objection',
  },
  {
    name: 'unknown set back to queued, attempt lowered',
    from: 'unknown',
    attack: async ({ account, payoutId }) => account.revive(payoutId, { attempt: '0' }),
    expect: 'stopped',
    reason: 'objection',
  },
  {
    name: 'attempt of a queued payout set below zero',
    from: 'completed',
    attack: async ({ account, payoutId }) => account.revive(payoutId, { attempt: '-3' }),
    ...SENT_BEFORE,
    reason: 'fields',
  },
  {
    name: 'attempt of a paid payout set between two numbers',
    from: 'completed',
    attack: async ({ account, payoutId }) => account.revive(payoutId, { attempt: '0.5' }),
    ...SENT_BEFORE,
    reason: 'fields',
  },
  {
    name: 'attempt of a paid payout that is no number',
    from: 'completed',
    attack: async ({ account, payoutId }) => account.revive(payoutId, { attempt: 'NaN' }),
    ...SENT_BEFORE,
    reason: 'fields',
  },
];
