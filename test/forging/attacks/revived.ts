import { tampered, time, type Attack, type Reached, type Target } from '../support/attack.js';
import { DAY_MS, signAct, signPayout, type KeyName } from '../support/signers.js';

/** Payouts that were sent, or decided about, and that the attacker wants to be sent again. */

const SENT_BEFORE = tampered('sent_before');

function revived(name: string, from: Reached, change: Readonly<Record<string, string>>, removes?: string): Attack {
  return {
    ...{ name, from, ...SENT_BEFORE },
    attack: async ({ account, payoutId }) => {
      if (removes !== undefined) await account.unset(payoutId, ...removes.split(' '));
      await account.revive(payoutId, change);
    },
  };
}

/** What tells of the sends of a payout. */
const HISTORY = 'tokens h1 h2 h3 told txhash fee place queuedSince';
const SENT_STATES: readonly Reached[] = ['completed', 'failed', 'rejected', 'unknown', 'not sent'];

/** An act in the record that does not count. The account's breaker is in nobody's way, and the payout was not paid. */
function withAct(name: string, make: (target: Target) => Promise<string> | string): Attack {
  return {
    ...{ name: `resend with ${name}`, from: 'not sent', ...SENT_BEFORE },
    attack: async (target) => target.account.revive(target.payoutId, { act: await make(target) }),
  };
}

type Change = Parameters<Target['account']['resendAct']>[1];

/** An act to resend that someone signed so. */
const actBy = (name: string, key: KeyName, change: Change = {}): Attack =>
  withAct(name, async ({ account, payoutId }) => account.resendAct(payoutId, { key, ...change }));

/** The operator's own, changed after it was signed. */
const actAltered = (name: string, change: Change, alter: (target: Target) => object): Attack =>
  withAct(name, async (target) => {
    const act = JSON.parse(await target.account.resendAct(target.payoutId, change)) as Record<string, unknown>;
    return JSON.stringify({ ...act, ...alter(target) });
  });

const paymentOf = ({ payoutId, input: { paymentId, amount, addressTo } }: Target) => ({
  ...{ payoutId, paymentId, amount, addressTo },
});

export const REVIVED: readonly Attack[] = [
  ...SENT_STATES.map((from) => revived(`${from} set back to queued`, from, {})),
  revived('completed set back to queued, attempt raised', 'completed', { attempt: '7' }),
  revived('completed set back to queued, tokens and history removed', 'completed', { n: '1' }, HISTORY),
  revived('rejected set back to queued, attempt raised', 'rejected', { attempt: '2' }),
  revived('unknown set back to queued, attempt raised', 'unknown', { attempt: '3' }),
  {
    ...{ name: 'paid record deleted and put in again from an old copy, attempt kept', from: 'completed' },
    ...SENT_BEFORE,
    attack: async ({ account, payoutId }) =>
      account.invent(payoutId, { ...(await account.record(payoutId)), attempt: '1' }),
  },
  {
    ...{ name: 'paid payout with a newer signature of the same producer', from: 'completed', ...SENT_BEFORE },
    attack: async (target) => {
      const signature = target.account.signatureFields(paymentOf(target), { lifetimeMs: DAY_MS / 2 });
      await target.account.revive(target.payoutId, signature);
    },
  },
  actBy('an act for another attempt', 'olga', { attempt: 2 }),
  withAct('an act for another payout', async ({ account, payoutId }) =>
    account.resendAct(payoutId, { payoutId: `${payoutId}-x` }),
  ),
  actBy('an act for another intent', 'olga', { intent: '0'.repeat(64) }),
  withAct('an act for another account', async ({ account, payoutId }) => {
    const intent = await account.intentHash(payoutId);
    return signAct(account.platformId + 1, { act: 'resend', payoutId, intent, attempt: 1 });
  }),
  actBy("an act of a producer's key", 'shop'),
  actBy("an act of an approver's key", 'ann'),
  actBy('an act of a revoked key', 'stolen'),
  actBy('an act of a foreign key', 'foreign'),
  actBy('an expired act', 'olga', { at: time(-2 * DAY_MS), expiresAt: time(-DAY_MS) }),
  actBy('an act of the future', 'olga', { at: time(DAY_MS), expiresAt: time(2 * DAY_MS) }),
  actBy('an act for too long', 'olga', { expiresAt: time(30 * DAY_MS) }),
  withAct('an act to resume', ({ account }) => signAct(account.platformId, { act: 'resume' })),
  actAltered('an act whose attempt was altered', { attempt: 2 }, () => ({ attempt: 1 })),
  actAltered("the producer's signature as an act's", {}, (target) => ({
    signature: signPayout(target.account.platformId, paymentOf(target)).signature,
  })),
  withAct('an act that is no JSON', () => 'olga says yes'),
  {
    ...{ name: 'cancelled set back to queued', from: 'cancelled' },
    attack: async ({ account, payoutId }) => account.revive(payoutId),
    // A cancellation is no signed statement: the payout is signed, unaltered, and was never sent.
    expect: 'paid once as signed',
  },
  {
    ...{ name: 'resend with the act that an operator signed for it', from: 'not sent' },
    attack: async ({ account, payoutId }) => account.revive(payoutId, { act: await account.resendAct(payoutId) }),
    expect: 'paid once as signed',
  },
];

const attemptSet = (name: string, from: Reached, attempt: string, ends: Omit<Attack, 'name' | 'attack'>): Attack => ({
  ...{ name, from, ...ends },
  attack: async ({ account, payoutId }) => account.revive(payoutId, { attempt }),
});

const STOPS = { expect: 'stopped', reason: 'objection' } as const;

/** Each stops its account: a number that the journal knows as sent. */
export const STOPPING: readonly Attack[] = [
  attemptSet('completed set back to queued, attempt lowered', 'completed', '0', STOPS),
  {
    ...{ name: 'completed set back to queued, all but the input removed', from: 'completed', ...STOPS },
    attack: async ({ account, payoutId }) => {
      const { paymentId = '', amount = '', addressTo = '', ...record } = await account.record(payoutId);
      const { key = '', sig = '', sigRest = '', iat = '', exp = '', aud = '' } = record;
      await account.invent(payoutId, { paymentId, amount, addressTo, key, sig, sigRest, iat, exp, aud });
    },
  },
  attemptSet('unknown set back to queued, attempt lowered', 'unknown', '0', STOPS),
  attemptSet('attempt of a queued payout set below zero', 'completed', '-3', tampered('fields')),
  attemptSet('attempt of a paid payout set between two numbers', 'completed', '0.5', tampered('fields')),
  attemptSet('attempt of a paid payout that is no number', 'completed', 'NaN', tampered('fields')),
];
