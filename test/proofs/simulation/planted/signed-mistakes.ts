import { parseAct, verifyAct } from '../../../../src/control/approvals/act.js';
import { hashIntent, intentOf } from '../../../../src/control/intents/intent.js';
import { SignedAuthority, type SignedRuntime } from '../../../../src/control/worker/signed-authority.js';
import type { SendJournal } from '../../../../src/journal/send-journal.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { SendAuthority, SendPermit } from '../../../../src/worker/sender/send-authority.js';
import type { Pieces } from '../../../world/worker.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import { but, type Mistakes } from './mistakes.js';

type MakeAuthority = Pieces['makeAuthority'];

export const signedMistakes: Mistakes = {
  'signatures not verified': { makeAuthority: permitting(believeRedis) },
  'one object verified, another sent': { makeAuthority: permitting(verifyAnother) },
  'expiry not checked': { makeAuthority: permitting(ignoreTime) },
  'verified only before the connection is opened': { makeAuthority: permitting(verifyOnce) },
  'earlier attempts of the journal not looked at': { makeAuthority: withJournal({ unclearedAttempts: () => [] }) },
  'attempts forgotten before their intents expire': { wrapJournal: forgetSoon },
  'what a journal forgot not noted': { makeAuthority: withJournal({ prunedUpTo: 0 }) },
  'the birth of a journal not asked': { makeAuthority: withJournal({ bornAt: 0 }) },
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

function endByAnyAct(journal: SendJournal): SendJournal {
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

function believeRedis(sound: SignedAuthority, { platformId }: SignedRuntime): Permit {
  return (payout) => {
    const permit = sound.permit(payout);
    const { signed } = payout;
    if (permit.kind === 'granted' || permit.hold.kind !== 'signature' || signed === undefined) return permit;
    const intent = hashIntent(intentOf(platformId, payout, signed));
    const [issuedAt, expiresAt] = [Date.parse(signed.issuedAt), Date.parse(signed.expiresAt)];
    return { kind: 'granted', signed: { intent, key: signed.key, issuedAt, expiresAt } };
  };
}

function verifyAnother(sound: SignedAuthority, _: SignedRuntime, ledger: WorldLedger): Permit {
  return (payout) => sound.permit(ledger.payout(payout.payoutId) ?? payout);
}

function ignoreTime(_: SignedAuthority, options: SignedRuntime): Permit {
  return (payout) => {
    const issuedAt = Date.parse(payout.signed?.issuedAt ?? '');
    return new SignedAuthority({ ...options, clock: { wallNow: () => issuedAt } }).permit(payout);
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

function withJournal(changes: Partial<SignedRuntime['journal']>): MakeAuthority {
  return ({ journal, ...rest }) => new SignedAuthority({ ...rest, journal: but(journal, changes) });
}

function forgetSoon(journal: SendJournal): SendJournal {
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
