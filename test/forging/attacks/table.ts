import type { AccountAttack } from '../support/account-attack.js';
import type { Attack } from '../support/attack.js';
import { describeHeld, PAID_AS_SIGNED, STOPS, type ToldAttack } from '../support/outcome.js';
import { ALIAS_RULES, ALIASES } from './aliases.js';
import { ALTERED, NOT_SIGNED } from './altered.js';
import { APPROVALS, REJECTIONS } from './approvals.js';
import { FORGED, SWAPPED } from './forged.js';
import { FORGOTTEN } from './forgotten.js';
import { JOBS } from './jobs.js';
import { LEDGERS } from './ledger-keys.js';
import { MIDDLE, type MiddleAttack } from './middle.js';
import { PAUSES } from './pauses.js';
import { POLICY_FILE_ATTACKS } from './policy-files.js';
import { POSTED } from './posted.js';
import { RESTARTS, type RestartAttack } from './restarts.js';
import { REVIVED, STOPPING } from './revived.js';

/** Attacks of one kind. */
export interface ToldAttacks {
  readonly title: string;
  readonly attacks: readonly ToldAttack[];
}

/** Each attack of the suite in words, and what the tests demand of it. docs/proofs.md has their counts. */
export const ATTACK_TABLE: readonly ToldAttacks[] = [
  { title: 'Queued payouts altered', attacks: ALTERED.map(describeAttack) },
  { title: 'What is not signed', attacks: NOT_SIGNED.map(describeAttack) },
  { title: 'Payouts invented, copied, or signed by others', attacks: [...FORGED, SWAPPED].map(describeAttack) },
  { title: 'Payouts sent again', attacks: [...REVIVED, ...STOPPING].map(describeStarted) },
  { title: "The breaker's pause", attacks: PAUSES.map(describeAccountAttack) },
  { title: 'Keys of the account', attacks: LEDGERS.map(describeAccountAttack) },
  { title: 'Jobs and sends on their way', attacks: JOBS.map(describeAccountAttack) },
  { title: 'Between two runs of the worker', attacks: RESTARTS.map(describeRestart) },
  {
    title: 'What the journal has forgotten',
    attacks: [{ name: FORGOTTEN.name, what: describeHeld(FORGOTTEN.expect) }],
  },
  { title: 'Replies of Redis altered on their way', attacks: MIDDLE.map(describeMiddle) },
  {
    title: 'Approvals',
    attacks: APPROVALS.map(({ name, held = 'until another person has approved it' }) => ({
      name,
      what: `held ${held}`,
    })),
  },
  {
    title: 'Rejections that a worker has seen',
    attacks: REJECTIONS.map(({ name }) => ({
      name,
      what: 'held: the journal has the rejection, also after a restart',
    })),
  },
  {
    title: 'Approvals brought to the dashboard',
    attacks: POSTED.map(({ name, status }) => ({
      name,
      what: `${status.includes(200) ? 'kept, and counts for no other person' : 'refused'}; held until another person has approved it`,
    })),
  },
  {
    title: 'What a policy counts',
    attacks: [
      { name: 'what was spent, removed from Redis', what: 'the journal counts it all the same' },
      { name: 'what was spent, said not to be paid', what: 'the journal counts it all the same' },
      {
        name: 'a gateway that lies about a rate from the start of the worker on',
        what: 'the rate of the journal counts; it is held',
      },
      { name: 'spends invented, rates and windows forged', what: 'what fits waits; nothing else is paid' },
    ],
  },
  {
    title: 'Another spelling, or another tag, of an address',
    attacks: ALIASES.map(({ name, rule }) => ({ name, what: ALIAS_RULES[rule] })),
  },
  {
    title: "The policy's file, exchanged",
    attacks: POLICY_FILE_ATTACKS.map(({ name }) => ({
      name,
      what: 'the former policy counts, and the worker warns; no worker starts',
    })),
  },
];

function describeAttack({ name, expect, reason, isTampering = false }: Attack): ToldAttack {
  switch (expect) {
    case 'held':
      if (reason === undefined || reason === 'objection') throw new Error(`${name}: a hold has a reason`);
      return { name, what: describeHeld({ held: reason, isTampering }) };
    case 'paid once as signed':
      return { name, what: PAID_AS_SIGNED };
    case 'waits':
      return { name, what: 'it waits, and is not paid' };
    case 'stopped':
      return { name, what: reason === 'objection' ? `${STOPS}: the journal objects` : STOPS };
  }
}

function describeStarted(attack: Attack): ToldAttack {
  return { ...describeAttack(attack), from: attack.from ?? 'queued' };
}

function describeAccountAttack({ name, expect, refusal }: AccountAttack): ToldAttack {
  if (refusal === 'resume') return { name, what: 'the account stays paused; the end of the pause counts as tampering' };
  const held = refusal === undefined ? '' : `${describeHeld({ held: refusal, isTampering: true })}. Besides, `;
  const what = {
    continues: `${held}${PAID_AS_SIGNED}`,
    stopped: STOPS,
    either: 'what is signed is paid once at most; nothing else',
  }[expect];
  return { name, what };
}

function describeRestart({ name, expect }: RestartAttack): ToldAttack {
  return { name, what: expect === 'stopped' ? STOPS : describeHeld(expect) };
}

function describeMiddle({ name, expect }: MiddleAttack): ToldAttack {
  if (expect === 'paid once') return { name, from: 'completed', what: 'it is not paid again' };
  return { name, from: 'queued', what: describeHeld(expect) };
}
