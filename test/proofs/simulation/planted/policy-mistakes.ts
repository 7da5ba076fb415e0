import { parseOfficeHours } from '../../../../src/control/policy/office-hours.js';
import type { Spend, SpendEvent } from '../../../../src/ledger/control-record.js';
import { walletKey } from '../../../../src/gateway/wallet.js';
import type { SendJournal } from '../../../../src/journal/send-journal.js';
import type { PolicyInForce } from '../../../../src/control/control-runtime.js';
import type { AccountPolicy } from '../../../../src/control/worker/account-policy.js';
import type { Policy } from '../../../../src/control/policy/policy.js';
import type { PolicyRule } from '../../../../src/control/policy/rule.js';
import { openPolicy, type PolicyPieces } from '../../../world/worker.js';
import { approvalMistakes } from './approval-mistakes.js';
import type { Mistake } from './mistake.js';
import { but } from './record-mistakes.js';

/** Each breaks a cap, or lets payouts wait that fit. */
export const policyMistakes: readonly Mistake[] = [
  { name: 'spends aged from their begin', pieces: withSpends(() => ageAtOnce) },
  { name: 'sends without an answer not counted', pieces: withSpends(countAccepted) },
  { name: 'rejected sends counted for good', pieces: withSpends(countRejected) },
  { name: 'spends forgotten at a restart', pieces: withWitnesses({ hasJournal: false, hasLedger: false }) },
  { name: 'spends of the ledger alone', pieces: withWitnesses({ hasJournal: false, hasLedger: true }) },
  { name: 'spends of the journal alone', pieces: withWitnesses({ hasJournal: true, hasLedger: false }) },
  { name: 'windows that begin at fixed times, such as days', pieces: { makePolicy: withSteps(1) } },
  { name: 'windows of buckets, such as hours', pieces: { makePolicy: withSteps(6) } },
  { name: 'what equals a cap refused', pieces: withRules(lowerCap) },
  { name: 'amounts as floats', pieces: withSpends(() => toFloats) },
  { name: 'addresses with another tag counted apart', pieces: withSpends(() => withoutTags) },
  { name: 'rates that are old or jumped believed', pieces: withPolicy(withAnyRate) },
  { name: 'office hours not asked', pieces: withRules(alwaysOpen) },
  { name: 'new addresses not waited for', pieces: withJournal({ seenAt: () => 0 }) },
  { name: 'new tags of a known address not waited for', pieces: { makePolicy: withSeenWallets } },
  { name: 'rejections forgotten with Redis', pieces: withJournal({ rejectionOf: () => undefined }) },
  { name: 'lists of addresses not asked', pieces: { makePolicy: withoutLists } },
  ...approvalMistakes,
];

type Filter = (events: readonly SpendEvent[]) => readonly SpendEvent[];

/** What the journal says of spends, altered. @param make - a filter for one process */
function withSpends(make: () => Filter): Mistake['pieces'] {
  return {
    makePolicy: ({ journal, ...rest }) => {
      const filter = make();
      return openPolicy({ ...rest, journal: withTaken(journal, () => filter(journal.takeSpends())) });
    },
  };
}

function withTaken(journal: SendJournal, takeSpends: SendJournal['takeSpends']): SendJournal {
  return but(journal, { takeSpends });
}

const ageAtOnce: Filter = (events) =>
  events.flatMap((event): SpendEvent[] =>
    event.kind === 'begun' ? [event, { kind: 'accepted', id: event.spend.id, at: event.at } as const] : [event],
  );

function countAccepted(): Filter {
  const begun = new Map<string, SpendEvent>();
  return (events) =>
    events.flatMap((event): SpendEvent[] => {
      if (event.kind !== 'begun') return [...(event.kind === 'accepted' ? [begun.get(event.id) ?? event] : []), event];
      begun.set(event.spend.id, event);
      return [];
    });
}

function countRejected(): Filter {
  const begun = new Map<string, SpendEvent>();
  const rejected: SpendEvent[] = [];
  let calls = 0;
  return (events) => {
    for (const event of events) {
      if (event.kind === 'begun') begun.set(event.spend.id, event);
      const found = event.kind === 'unpaid' ? begun.get(event.id) : undefined;
      if (found !== undefined) rejected.push(found);
    }
    calls += 1;
    const again = rejected.flatMap((event) =>
      event.kind === 'begun' ? [{ ...event, spend: { ...event.spend, id: `${event.spend.id} ${calls}` } }] : [],
    );
    return [...events.filter(({ kind }) => kind !== 'unpaid'), ...again];
  };
}

/** What a process learns of when it takes over. */
function withWitnesses({ hasJournal, hasLedger }: { hasJournal: boolean; hasLedger: boolean }): Mistake['pieces'] {
  return {
    makePolicy: ({ journal, senderLedger, ...rest }) => {
      let isFirst = !hasJournal;
      const takeSpends = (): readonly SpendEvent[] => {
        const events = journal.takeSpends();
        if (!isFirst) return events;
        isFirst = false;
        return [];
      };
      const readSpends: typeof senderLedger.readSpends = async () => (hasLedger ? senderLedger.readSpends() : []);
      const holdPayout: typeof senderLedger.holdPayout = async (...args) => senderLedger.holdPayout(...args);
      return openPolicy({
        ...rest,
        journal: withTaken(journal, takeSpends),
        senderLedger: { readSpends, holdPayout },
      });
    },
  };
}

/** A spend is taken for one of the beginning of its hour, or day. @param steps - how many of them a window has */
function withSteps(steps: number): NonNullable<Mistake['pieces']['makePolicy']> {
  return (options) => {
    const { clock, current } = options;
    const stepMs = current.longestWindowMs / steps;
    return openPolicy({
      ...options,
      clock: {
        now: () => Math.floor(clock.now() / stepMs) * stepMs,
        wallNow: () => clock.wallNow(),
        sleep: async (...args) => clock.sleep(...args),
      },
    });
  };
}

/** Amounts are added up as numbers of JavaScript. */
const toFloats: Filter = (events) =>
  events.map((event) => alterSpend(event, ({ amount }) => ({ amount: shorten(amount) })));

function shorten(amount: string): string {
  return String(Number(amount));
}

/** Each spelling of an address has a count of its own. */
const withoutTags: Filter = (events) =>
  events.map((event) => alterSpend(event, ({ addressTo }) => ({ addressTo: addressTo.replace(':', '/') })));

function alterSpend(event: SpendEvent, change: (spend: Spend) => Partial<Spend>): SpendEvent {
  return event.kind === 'begun' ? { ...event, spend: { ...event.spend, ...change(event.spend) } } : event;
}

function withPolicy(change: (policy: Policy) => Policy): Mistake['pieces'] {
  return {
    makePolicy: ({ current, ...rest }) =>
      openPolicy({ ...rest, current: { ...parts(current), policy: change(current.policy) } }),
  };
}

function withRules(change: (rule: PolicyRule) => PolicyRule): Mistake['pieces'] {
  return withPolicy((policy) => ({ ...policy, rules: policy.rules.map(change) }));
}

/** Own fields: a class has getters. */
function parts({ policy, hash, isListed, longestWindowMs }: PolicyInForce): PolicyInForce {
  return { policy, hash, isListed, longestWindowMs };
}

function lowerCap(rule: PolicyRule): PolicyRule {
  return { ...rule, cap: rule.cap && { ...rule.cap, limit: rule.cap.limit - 1n } };
}

function withAnyRate(policy: Policy): Policy {
  return { ...policy, usd: policy.usd && { ...policy.usd, maxAgeMs: 3_600_000, maxMovePercent: 1_000_000 } };
}

function withoutLists({ current, ...rest }: PolicyPieces): AccountPolicy {
  return openPolicy({ ...rest, current: { ...parts(current), isListed: () => false } });
}

/** What was seen with one tag counts as seen with any. */
function withSeenWallets({ journal, ...rest }: PolicyPieces): AccountPolicy {
  const seenAt = new Map<string, number>();
  const noteSeen: SendJournal['noteSeen'] = async (seen) => {
    for (const address of seen.addresses) if (!seenAt.has(walletKey(address))) seenAt.set(walletKey(address), seen.at);
    await journal.noteSeen(seen);
  };
  const changes = { noteSeen, seenAt: (address: string) => seenAt.get(walletKey(address)) ?? journal.seenAt(address) };
  return openPolicy({ ...rest, journal: but(journal, changes) });
}

/** A rule whose hours never end. */
function alwaysOpen(rule: PolicyRule): PolicyRule {
  return { ...rule, hours: rule.hours && parseOfficeHours('Mon-Sun 00:00-24:00 UTC') };
}

function withJournal(changes: Partial<SendJournal>): Mistake['pieces'] {
  return { makePolicy: ({ journal, ...rest }) => openPolicy({ ...rest, journal: but(journal, changes) }) };
}
