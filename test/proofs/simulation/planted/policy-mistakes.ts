import type { SpendEvent } from '../../../../src/control/policy/spend-event.js';
import type { SendJournal } from '../../../../src/journal/send-journal.js';
import { AccountPolicy, type AccountPolicyOptions } from '../../../../src/worker/policy/account-policy.js';
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
  { name: 'windows that begin at fixed times', pieces: { makePolicy: withFixedWindows } },
  { name: 'what equals a cap refused', pieces: { makePolicy: (options) => new AccountPolicy(withLowerCaps(options)) } },
];

type Filter = (events: readonly SpendEvent[]) => readonly SpendEvent[];

/** What the journal says of spends, altered. @param make - a filter for one process */
function withSpends(make: () => Filter): Mistake['pieces'] {
  return {
    makePolicy: ({ journal, ...rest }) => {
      const filter = make();
      return new AccountPolicy({ ...rest, journal: withTaken(journal, () => filter(journal.takeSpends())) });
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
      return new AccountPolicy({
        ...rest,
        journal: withTaken(journal, takeSpends),
        senderLedger: { readSpends, holdPayout },
      });
    },
  };
}

/** A spend is taken for one of the beginning of its hour, or day. */
function withFixedWindows(options: AccountPolicyOptions): AccountPolicy {
  const { clock, current } = options;
  const windowMs = current.longestWindowMs;
  return new AccountPolicy({
    ...options,
    clock: {
      now: () => Math.floor(clock.now() / windowMs) * windowMs,
      wallNow: () => clock.wallNow(),
      sleep: async (...args) => clock.sleep(...args),
    },
  });
}

function withLowerCaps(options: AccountPolicyOptions): AccountPolicyOptions {
  const { current } = options;
  const rules = current.policy.rules.map((rule) => ({
    ...rule,
    cap: rule.cap && { ...rule.cap, limit: rule.cap.limit - 1n },
  }));
  const { hash, isListed, longestWindowMs } = current;
  return { ...options, current: { hash, isListed, longestWindowMs, policy: { ...current.policy, rules } } };
}
