import { parseAct, verifyAct } from '../../../../src/control/approvals/act.js';
import { proofOf } from '../../../../src/control/intents/intent.js';
import { parseOfficeHours } from '../../../../src/control/policy/office-hours.js';
import type { Policy } from '../../../../src/control/policy/policy.js';
import type { PolicyRule } from '../../../../src/control/policy/rule.js';
import { SignedAuthority, type SignedRuntime } from '../../../../src/control/worker/signed-authority.js';
import { walletKey } from '../../../../src/gateway/wallet.js';
import type { Clock } from '../../../../src/base/clock.js';
import type { AccountJournal, ControlJournal } from '../../../../src/journal/control-journal.js';
import type { SignedApproval, Spend, SpendEvent } from '../../../../src/ledger/control-record.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { SendAuthority, SendPermit } from '../../../../src/worker/sender/send-authority.js';
import { AccountPolicy } from '../../../../src/control/worker/account-policy.js';
import { openPolicy, type Pieces, type PolicyPieces } from '../../../world/worker.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import { APPROVERS } from '../policed/rules.js';
import { APPROVER_KEYS, type ApproverKey, intentHashOf, signApproval } from '../signed/control.js';
import { but, type Mistake, type Mistakes } from './mistakes.js';

type MakeAuthority = Pieces['makeAuthority'];

export const signedMistakes: Mistakes = {
  'signatures not verified': { makeAuthority: permitting(believeRedis) },
  'one object verified, another sent': {
    makeAuthority: permitting((sound, _, ledger) => (payout) => sound.permit(ledger.payout(payout.payoutId) ?? payout)),
  },
  'expiry not checked': {
    makeAuthority: permitting((_, options) => (payout) => {
      const issuedAt = Date.parse(payout.signed?.issuedAt ?? '');
      return new SignedAuthority({ ...options, clock: { wallNow: () => issuedAt } }).permit(payout);
    }),
  },
  'verified only before the connection is opened': { makeAuthority: permitting(verifyOnce) },
  'earlier attempts of the journal not looked at': {
    makeAuthority: withAuthorityJournal({ unclearedAttempts: () => [] }),
  },
  'attempts forgotten before their intents expire': { wrapJournal: forgetSoon },
  'what a journal forgot not noted': { makeAuthority: withAuthorityJournal({ prunedUpTo: 0 }) },
  'the birth of a journal not asked': { makeAuthority: withAuthorityJournal({ bornAt: 0 }) },
  'an act for any attempt': { makeAuthority: takeActs({ anyAttempt: true }) },
  'an act for any attempt, and again': { makeAuthority: takeActs({ anyAttempt: true, again: true }) },
  'an act for any payout': { makeAuthority: takeActs({ anyPayout: true }) },
  'a pause not kept': { wrapJournal: (journal) => but(journal, { pausedAt: undefined }) },
  'a pause ended by an act from before it': { makeAuthority: withResume((options) => options, 0) },
  'a pause ended by an act that was used': {
    wrapJournal: endByAnyAct,
    makeAuthority: withResume(({ journal, ...rest }) => ({ ...rest, journal: but(journal, { hasAct: () => false }) })),
  },
  'Redis believed about how long a request is on its way': { signsInDoubt: true },
};

function endByAnyAct(journal: AccountJournal): AccountJournal {
  let isEnded = false;
  const changed = but(journal, {
    notePaused: async (pause) => {
      isEnded = false;
      await journal.notePaused(pause);
    },
    noteResumed: async (note) => {
      await journal.noteResumed(note);
      isEnded = true;
    },
  });
  return new Proxy(changed, {
    get: (target, name) => {
      if (isEnded && (name === 'pausedAt' || name === 'pausedReason')) return undefined;
      return Reflect.get(target, name) as unknown;
    },
  });
}

type Permit = SendAuthority['permit'];

function permitting(
  change: (sound: SignedAuthority, options: SignedRuntime, ledger: WorldLedger) => Permit,
): MakeAuthority {
  return (options, { ledgerOfRun }) => {
    const sound = new SignedAuthority(options);
    const permit = change(sound, options, ledgerOfRun);
    return { permit, judgeResume: (act, pausedAt) => sound.judgeResume(act, pausedAt) };
  };
}

function believeRedis(sound: SignedAuthority): Permit {
  return (payout) => {
    const permit = sound.permit(payout);
    const { signed } = payout;
    if (permit.kind === 'granted' || permit.hold.kind !== 'signature' || signed === undefined) return permit;
    const intent = intentHashOf(payout);
    const [issuedAt, expiresAt] = [Date.parse(signed.issuedAt), Date.parse(signed.expiresAt)];
    return {
      kind: 'granted',
      signed: { intent, key: signed.key, issuedAt, expiresAt, proof: proofOf(payout, signed) },
    };
  };
}

function verifyOnce(sound: SignedAuthority): Permit {
  const permits = new WeakMap<Payout, SendPermit>();
  return (payout) => {
    const permit = permits.get(payout) ?? sound.permit(payout);
    permits.set(payout, permit);
    return permit;
  };
}

function withAuthorityJournal(changes: Partial<SignedRuntime['journal']>): MakeAuthority {
  return ({ journal, ...rest }) => new SignedAuthority({ ...rest, journal: but(journal, changes) });
}

function forgetSoon(journal: AccountJournal): AccountJournal {
  const isRecent = (payoutId: string, attempt: number) =>
    journal.lastSends(2).some((send) => send.payoutId === payoutId && send.attempt === attempt);
  return but(journal, {
    knows: (payoutId, attempt) => journal.knows(payoutId, attempt) && isRecent(payoutId, attempt),
    unclearedAttempts: (payoutId, below) =>
      journal.unclearedAttempts(payoutId, below).filter((attempt) => isRecent(payoutId, attempt)),
  });
}

function takeActs(lax: { anyAttempt?: true; anyPayout?: true; again?: true }): MakeAuthority {
  return permitting((sound, options) => {
    const { platformId, keyring, journal, clock } = options;
    const blind = new SignedAuthority({ ...options, journal: but(journal, { unclearedAttempts: () => [] }) });
    return (payout) => {
      const permit = sound.permit(payout);
      const granted = blind.permit(payout);
      const act = parseAct(payout.act ?? '');
      if (permit.kind === 'granted' || granted.kind === 'refused' || act === undefined) return permit;
      const clears = journal.unclearedAttempts(payout.payoutId, Infinity);
      const { payoutId, intent } = lax.anyPayout ? act : { payoutId: payout.payoutId, intent: granted.signed.intent };
      const attempt = lax.anyAttempt === true || lax.anyPayout === true ? act.attempt : clears[0];
      const wanted = { act: 'resend', payoutId, intent, attempt } as const;
      const verdict = verifyAct(platformId, act, wanted, keyring, clock.wallNow());
      if (verdict.kind === 'refused' || (!lax.again && journal.hasAct(verdict.actHash))) return permit;
      return { kind: 'granted', signed: { ...granted.signed, act: verdict.actHash, clears } };
    };
  });
}

function withResume(change: (options: SignedRuntime) => SignedRuntime, since?: number): MakeAuthority {
  return (options) => {
    const [sound, lax] = [new SignedAuthority(options), new SignedAuthority(change(options))];
    return {
      permit: (payout) => sound.permit(payout),
      judgeResume: (act, pausedAt) => lax.judgeResume(act, since ?? pausedAt),
    };
  };
}

export const policyMistakes: Mistakes = {
  'spends aged from their begin': withSpends(() => ageAtOnce),
  'sends without an answer not counted': withSpends(countAccepted),
  'rejected sends counted for good': withSpends(countRejected),
  'spends forgotten at a restart': withWitnesses({ hasJournal: false, hasLedger: false }),
  'spends of the ledger alone': withWitnesses({ hasJournal: false, hasLedger: true }),
  'spends of the journal alone': withWitnesses({ hasJournal: true, hasLedger: false }),
  'windows that begin at fixed times, such as days': withSteps(1),
  'windows of buckets, such as hours': withSteps(6),
  'what equals a cap refused': withRules(({ cap }) => ({ cap: cap && { ...cap, limit: cap.limit - 1n } })),
  'amounts as floats': withSpent(({ amount }) => ({ amount: String(Number(amount)) })),
  'addresses with another tag counted apart': withSpent(({ addressTo }) => ({
    addressTo: addressTo.replace(':', '/'),
  })),
  'rates that are old or jumped believed': withPolicy(({ usd }) => ({
    usd: usd && { ...usd, maxAgeMs: 3_600_000, maxMovePercent: 1_000_000 },
  })),
  'a symbol valued by the coin': valuedByCoin(),
  'office hours not asked': withRules(({ hours }) => ({ hours: hours && parseOfficeHours('Mon-Sun 00:00-24:00 UTC') })),
  'new addresses not waited for': withJournal(() => ({ seenAt: () => 0 })),
  'new tags of a known address not waited for': withJournal(seenWallets),
  'rejections forgotten with Redis': withJournal(() => ({ rejectionsOf: () => [] })),
  'a rejection that does not count': {
    makePolicy: ({ signatures, source, publish, ...runtime }) =>
      new AccountPolicy(runtime, signatures, source, publish),
  },
  'lists of addresses not asked': change(({ current }) => ({ current: but(current, { isListed: () => false }) })),
  'a quorum of keys': counting('second key'),
  'own approval counted: of the signer': counting('signer'),
  'own approval counted: of who asked for it': counting('requester'),
  'expired approvals counted': counting('expired'),
  'approvals of another intent counted': counting('another intent'),
  'approvals of anyone counted': counting('not of the group'),
};

function change(alter: (pieces: PolicyPieces) => Partial<PolicyPieces>): Mistake {
  return { makePolicy: (pieces) => openPolicy({ ...pieces, ...alter(pieces) }) };
}

function valuedByCoin(): Mistake {
  return {
    makePolicy: (pieces) => {
      const policy = openPolicy(pieces);
      const { rates } = policy.authority;
      const sound = rates.valueOf.bind(rates);
      rates.valueOf = ({ paymentId, amount }, now) => sound({ paymentId, amount }, now);
      return policy;
    },
  };
}

function withJournal(alter: (journal: ControlJournal) => Partial<ControlJournal>): Mistake {
  return change(({ journal }) => ({ journal: but(journal, alter(journal)) }));
}

type Filter = (events: readonly SpendEvent[]) => readonly SpendEvent[];

function withSpends(make: () => Filter): Mistake {
  return withJournal((journal) => {
    const filter = make();
    return { takeSpends: () => filter(journal.takeSpends()) };
  });
}

function withSpent(alter: (spend: Spend) => Partial<Spend>): Mistake {
  const alterEvent = (event: SpendEvent) =>
    event.kind === 'begun' ? { ...event, spend: { ...event.spend, ...alter(event.spend) } } : event;
  return withSpends(() => (events) => events.map(alterEvent));
}

const ageAtOnce: Filter = (events) =>
  events.flatMap((event): SpendEvent[] =>
    event.kind === 'begun' ? [event, { kind: 'accepted', id: event.spend.id, at: event.at }] : [event],
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
  const begun = new Map<string, SpendEvent & { kind: 'begun' }>();
  const rejected: (SpendEvent & { kind: 'begun' })[] = [];
  let calls = 0;
  return (events) => {
    for (const event of events) {
      if (event.kind === 'begun') begun.set(event.spend.id, event);
      const found = event.kind === 'unpaid' ? begun.get(event.id) : undefined;
      if (found !== undefined) rejected.push(found);
    }
    calls += 1;
    const again = rejected.map(({ spend, ...event }) => ({
      ...event,
      spend: { ...spend, id: `${spend.id} ${calls}` },
    }));
    return [...events.filter(({ kind }) => kind !== 'unpaid'), ...again];
  };
}

function withWitnesses({ hasJournal, hasLedger }: { hasJournal: boolean; hasLedger: boolean }): Mistake {
  return change(({ journal, senderLedger }) => {
    let isFirst = !hasJournal;
    const takeSpends = (): readonly SpendEvent[] => {
      const events = journal.takeSpends();
      const isLost = isFirst;
      isFirst = false;
      return isLost ? [] : events;
    };
    const readSpends = async () => (hasLedger ? senderLedger.readSpends() : []);
    return { journal: but(journal, { takeSpends }), senderLedger: but(senderLedger, { readSpends }) };
  });
}

/** A spend is taken for one of the beginning of its hour, or day. @param steps - how many of them a window has */
function withSteps(steps: number): Mistake {
  return change(({ clock, current }) => {
    const stepMs = current.longestWindowMs / steps;
    return { clock: but(clock, { now: () => Math.floor(clock.now() / stepMs) * stepMs }) };
  });
}

function withPolicy(alter: (policy: Policy) => Partial<Policy>): Mistake {
  return change(({ current }) => ({
    current: but(current, { policy: { ...current.policy, ...alter(current.policy) } }),
  }));
}

function withRules(alter: (rule: PolicyRule) => Partial<PolicyRule>): Mistake {
  return withPolicy(({ rules }) => ({ rules: rules.map((rule) => ({ ...rule, ...alter(rule) })) }));
}

function seenWallets(journal: ControlJournal): Partial<ControlJournal> {
  const seenAt = new Map<string, number>();
  return {
    noteSeen: async (seen) => {
      const wallets = seen.addresses.map(walletKey);
      for (const wallet of wallets) if (!seenAt.has(wallet)) seenAt.set(wallet, seen.at);
      await journal.noteSeen(seen);
    },
    seenAt: (address) => seenAt.get(walletKey(address)) ?? journal.seenAt(address),
  };
}

type Flaw = 'second key' | 'signer' | 'requester' | 'expired' | 'another intent' | 'not of the group';
function withApprovals(
  alter: (payout: Payout, approvals: readonly SignedApproval[], clock: Clock) => readonly SignedApproval[],
): Mistake {
  return {
    wrapLedger: (ledger, { clock }) => ({
      ...ledger,
      readPayout: async (payoutId) => {
        const payout = await ledger.readPayout(payoutId);
        const { approvals, signed } = payout ?? {};
        return payout && approvals && signed ? { ...payout, approvals: alter(payout, approvals, clock) } : payout;
      },
    }),
  };
}

/** A worker that counts what has this flaw: it is shown, in the place of each such approval, one that counts. */
function counting(flaw: Flaw): Mistake {
  return withApprovals((payout, approvals, clock) => {
    const counted = new Set<string>();
    const flawed: SignedApproval[] = [];
    const sound: SignedApproval[] = [];
    for (const approval of approvals) {
      const flaws = approval.decision === 'approve' ? flawsOf(payout, approval, counted, clock.wallNow()) : [];
      if (flaws.length === 0) counted.add(personOf(approval));
      if (flaws.length === 1 && flaws[0] === flaw) flawed.push(approval);
      else sound.push(approval);
    }
    const spare = sparePersons(payout, counted);
    const now = clock.wallNow();
    const counting = spare.slice(0, flawed.length);
    const repaired = counting.map((key) => signApproval(key, payout, payout, 'approve', [now, now + 3_600_000]));
    return [...sound, ...repaired];
  });
}

function flawsOf(payout: Payout, approval: SignedApproval, counted: ReadonlySet<string>, now: number): Flaw[] {
  const person = personOf(approval);
  const flaws: Readonly<Record<Flaw, boolean>> = {
    'second key': counted.has(person),
    signer: person === 'Shop',
    requester: person === payout.signed?.requestedBy,
    expired: Date.parse(approval.expiresAt ?? '') <= now,
    'another intent': approval.intent !== intentHashOf(payout),
    'not of the group': !APPROVERS.includes(person),
  };
  return (Object.keys(flaws) as Flaw[]).filter((flaw) => flaws[flaw]);
}

function personOf({ by }: SignedApproval) {
  return APPROVER_KEYS.find(({ name }) => name === by)?.person ?? '';
}

function sparePersons({ signed }: Payout, counted: ReadonlySet<string>): ApproverKey[] {
  const isSpare = ({ person }: ApproverKey, index: number) =>
    APPROVERS.includes(person) &&
    person !== 'Shop' &&
    person !== signed?.requestedBy &&
    !counted.has(person) &&
    APPROVER_KEYS.findIndex((key) => key.person === person) === index;
  return APPROVER_KEYS.filter(isSpare);
}
