import { hashIntent, intentOf } from '../../../../src/control/intents/intent.js';
import { parseAct, verifyAct } from '../../../../src/control/approvals/act.js';
import type { SendJournal } from '../../../../src/journal/send-journal.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { ResumeAuthority, SendAuthority, SendPermit } from '../../../../src/worker/sender/send-authority.js';
import {
  SignedAuthority,
  type SignedRuntime,
  type SignedPermit,
} from '../../../../src/control/worker/signed-authority.js';
import type { Pieces } from '../../../world/worker.js';
import type { Mistake } from './mistake.js';
import { but } from './record-mistakes.js';

type MakeAuthority = Pieces['makeAuthority'];

/** What breaks a promise only where payouts are signed, and someone writes to Redis. */
export const signedMistakes: readonly Mistake[] = [
  { name: 'signatures not verified', pieces: { makeAuthority: (options) => new BlindAuthority(options) } },
  { name: 'one object verified, another sent', pieces: { makeAuthority: verifyAnother } },
  { name: 'expiry not checked', pieces: { makeAuthority: (options) => new TimelessAuthority(options) } },
  { name: 'verified only before the connection is opened', pieces: { makeAuthority: verifyOnce } },
  {
    name: 'earlier attempts of the journal not looked at',
    pieces: { makeAuthority: withJournal({ unclearedAttempts: () => [] }) },
  },
  { name: 'attempts forgotten before their intents expire', pieces: { wrapJournal: forgetSoon } },
  { name: 'what a journal forgot not noted', pieces: { makeAuthority: withJournal({ prunedUpTo: 0 }) } },
  { name: 'the birth of a journal not asked', pieces: { makeAuthority: withJournal({ bornAt: 0 }) } },
  { name: 'an act for any attempt', pieces: { makeAuthority: takeActs({ anyAttempt: true, again: false }) } },
  { name: 'an act for any attempt, and again', pieces: { makeAuthority: takeActs({ anyAttempt: true, again: true }) } },
  { name: 'an act for any payout', pieces: { makeAuthority: takeActs({ anyPayout: true }) } },
  { name: 'a pause not kept', pieces: { wrapJournal: (journal) => but(journal, { pausedAt: undefined }) } },
  { name: 'a pause ended by an act from before it', pieces: { makeAuthority: withResume((options) => options, 0) } },
  {
    name: 'a pause ended by an act that was used',
    // In both places of the rule: the journal keeps its pause too.
    pieces: {
      wrapJournal: endByAnyAct,
      makeAuthority: withResume(({ journal, ...rest }) => ({
        ...rest,
        journal: butControl(journal, { hasAct: () => false }),
      })),
    },
  },
  { name: 'Redis believed about how long a request is on its way', pieces: { signsInDoubt: true } },
];

/** Ends a pause with each note of an act. */
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

/** Takes whatever stands in Redis for signed. */
class BlindAuthority extends SignedAuthority {
  readonly #platformId: number;

  constructor(options: SignedRuntime) {
    super(options);
    this.#platformId = options.platformId;
  }

  override permit(payout: Payout): SignedPermit {
    const permit = super.permit(payout);
    const { signed } = payout;
    if (permit.kind === 'granted' || permit.hold.kind !== 'signature' || signed === undefined) return permit;
    const intent = hashIntent(intentOf(this.#platformId, payout, signed));
    const [issuedAt, expiresAt] = [Date.parse(signed.issuedAt), Date.parse(signed.expiresAt)];
    return { kind: 'granted', signed: { intent, key: signed.key, issuedAt, expiresAt } };
  }
}

/** Looks the payout up again to verify it. */
function verifyAnother(...[options, { ledgerOfRun }]: Parameters<MakeAuthority>): SendAuthority & ResumeAuthority {
  const authority = new SignedAuthority(options);
  return {
    permit: (payout) =>
      authority.permit(ledgerOfRun.payouts().find(({ payoutId }) => payoutId === payout.payoutId) ?? payout),
    judgeResume: (act, pausedAt) => authority.judgeResume(act, pausedAt),
  };
}

class TimelessAuthority extends SignedAuthority {
  readonly #options: SignedRuntime;

  constructor(options: SignedRuntime) {
    super(options);
    this.#options = options;
  }

  override permit(payout: Payout): SignedPermit {
    const issuedAt = Date.parse(payout.signed?.issuedAt ?? '');
    return new SignedAuthority({ ...this.#options, clock: { wallNow: () => issuedAt } }).permit(payout);
  }
}

function verifyOnce(options: SignedRuntime): SendAuthority & ResumeAuthority {
  const authority = new SignedAuthority(options);
  const permits = new WeakMap<Payout, SendPermit>();
  return {
    permit: (payout) => {
      const permit = permits.get(payout) ?? authority.permit(payout);
      permits.set(payout, permit);
      return permit;
    },
    judgeResume: (act, pausedAt) => authority.judgeResume(act, pausedAt),
  };
}

function butControl(
  journal: SignedRuntime['journal'],
  changes: Partial<SignedRuntime['journal']>,
): SignedRuntime['journal'] {
  return but(journal as SendJournal, changes);
}

function withJournal(changes: Partial<SignedRuntime['journal']>): MakeAuthority {
  return ({ journal, ...rest }) => new SignedAuthority({ ...rest, journal: butControl(journal, changes) });
}

/** Remembers the last two sends, and the journal's age. */
function forgetSoon(journal: SendJournal): SendJournal {
  const isRecent = (payoutId: string, attempt: number): boolean =>
    journal.lastSends(2).some((send) => send.payoutId === payoutId && send.attempt === attempt);
  return but(journal, {
    knows: (payoutId, attempt) => journal.knows(payoutId, attempt) && isRecent(payoutId, attempt),
    unclearedAttempts: (payoutId, below) =>
      journal.unclearedAttempts(payoutId, below).filter((attempt) => isRecent(payoutId, attempt)),
  });
}

interface Laxness {
  readonly anyAttempt?: boolean;
  readonly anyPayout?: boolean;
  readonly again?: boolean;
}

/** Takes an operator's act for more than it states. */
function takeActs({ anyAttempt = false, anyPayout = false, again = false }: Laxness): MakeAuthority {
  return (options) => {
    const { platformId, keyring, journal, clock } = options;
    const sound = new SignedAuthority(options);
    const blind = new SignedAuthority({ ...options, journal: butControl(journal, { unclearedAttempts: () => [] }) });
    return {
      permit: (payout) => {
        const permit = sound.permit(payout);
        const granted = blind.permit(payout);
        const act = parseAct(payout.act ?? '');
        if (permit.kind === 'granted' || granted.kind === 'refused' || act === undefined) return permit;
        const clears = journal.unclearedAttempts(payout.payoutId, Infinity);
        const wanted = {
          act: 'resend',
          payoutId: anyPayout ? act.payoutId : payout.payoutId,
          intent: anyPayout ? act.intent : granted.signed.intent,
          attempt: anyAttempt || anyPayout ? act.attempt : clears[0],
        } as const;
        const verdict = verifyAct(platformId, act, wanted, keyring, clock.wallNow());
        if (verdict.kind === 'refused' || (!again && journal.hasAct(verdict.actHash))) return permit;
        return { kind: 'granted', signed: { ...granted.signed, act: verdict.actHash, clears } };
      },
      judgeResume: (act, pausedAt) => sound.judgeResume(act, pausedAt),
    };
  };
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
