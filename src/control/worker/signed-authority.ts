import type { Clock } from '../../base/clock.js';
import { formatTimeUtc, toIsoTime } from '../../base/format.js';
import type { SignedSend } from '../../journal/journal-line.js';
import type { Hold, Payout } from '../../ledger/payout.js';
import type {
  GrantedSend,
  RefusedSend,
  ResumeAuthority,
  ResumeVerdict,
  SendAuthority,
} from '../../worker/sender/send-authority.js';
import type { ControlRuntime } from '../control-runtime.js';
import { parseAct, type SignedAct, verifyAct } from '../approvals/act.js';
import { intentOf, proofOf } from '../intents/intent.js';
import { verifyIntent } from '../intents/verify-intent.js';
import type { KeyFinder } from '../keys/keyring.js';

/** What deciding about signatures needs; `payouts doctor` has no more of it. */
export interface SignedRuntime extends Pick<ControlRuntime, 'platformId'> {
  readonly keyring: KeyFinder;
  readonly journal: Pick<
    ControlRuntime['journal'],
    'bornAt' | 'prunedUpTo' | 'unclearedAttempts' | 'wasAccepted' | 'hasAct' | 'lastSends'
  >;
  readonly clock: Pick<Clock, 'wallNow'>;
}

type SignedPermit = (GrantedSend & { readonly signed: SignedSend }) | RefusedSend;

/** A journal keeps this many sends whole. */
const NEWEST_SENDS = 200;

const UNSIGNED = 'It is not signed. Enqueue it again with a producer that has a signing key.';
const NEW_PAYOUT_ID =
  'Ask the gateway whether it was paid. If it is still to be paid, cancel it and enqueue the payment under a new payoutId.';
const SENT_AND_UNSIGNED = `It is not signed, and after an attempt it cannot be signed any more. ${NEW_PAYOUT_ID}`;
const SENT_AND_EXPIRED = `It expired after an attempt, and cannot be signed again. ${NEW_PAYOUT_ID}`;

/**
 * Grants once what a producer of the keyring signed, if it is unaltered and in its time. This host's journal knows
 * earlier sends, whatever Redis says.
 */
export class SignedAuthority implements SendAuthority, ResumeAuthority {
  readonly #runtime: SignedRuntime;

  constructor(runtime: SignedRuntime) {
    this.#runtime = runtime;
  }

  permit(payout: Payout): SignedPermit {
    const { platformId, keyring, clock } = this.#runtime;
    const { signed } = payout;
    if (signed === undefined) {
      const message = payout.attempt > 0 ? SENT_AND_UNSIGNED : UNSIGNED;
      return refuse({ kind: 'signature', reason: 'unsigned', message, isTampering: false });
    }
    const verdict = verifyIntent(intentOf(platformId, payout, signed), signed, keyring, clock.wallNow());
    if (verdict.kind === 'refused') {
      const { fault: reason, isTampering } = verdict;
      const message = reason === 'expired' && payout.attempt > 0 ? SENT_AND_EXPIRED : verdict.message;
      return refuse({ kind: 'signature', reason, message, isTampering });
    }
    const [issuedAt, expiresAt] = [Date.parse(signed.issuedAt), Date.parse(signed.expiresAt)];
    const proof = proofOf(payout, signed);
    return (
      this.#checkJournal(issuedAt, expiresAt) ??
      this.#checkAttempts(payout, { intent: verdict.intentHash, key: signed.key, issuedAt, expiresAt, proof })
    );
  }

  judgeResume(act: string | undefined, pausedAt: number): ResumeVerdict {
    const { platformId, keyring, clock, journal } = this.#runtime;
    const signed = act === undefined ? undefined : parseAct(act);
    if (signed === undefined) return { kind: 'refused', message: 'there is no signed act' };
    const wanted = { act: 'resume', payoutId: '', intent: '', attempt: undefined } as const;
    const verdict = verifyAct(platformId, signed, wanted, keyring, clock.wallNow());
    if (verdict.kind === 'refused') return verdict;
    if (Date.parse(signed.at) < pausedAt) {
      return { kind: 'refused', message: `the act was signed at ${signed.at}, before the pause` };
    }
    if (journal.hasAct(verdict.actHash)) return { kind: 'refused', message: 'the act was used before' };
    return { kind: 'accepted', actHash: verdict.actHash };
  }

  /** Refuses if the journal cannot know of an earlier send. */
  #checkJournal(issuedAt: number, expiresAt: number): SignedPermit | undefined {
    const { bornAt, prunedUpTo } = this.#runtime.journal;
    if (issuedAt < bornAt) {
      const message = `It was signed before the send journal of this worker was begun (${formatTimeUtc(toIsoTime(bornAt))}), which cannot know whether it was sent. If the gateway's records show that it was not, run \`payouts audit adopt-journal\` on the worker's host, then \`payouts release\`.`;
      return refuse({ kind: 'journal', reason: 'before_birth', message, isTampering: false });
    }
    if (expiresAt <= prunedUpTo) {
      const message = `The send journal has forgotten sends that expired up to ${formatTimeUtc(toIsoTime(prunedUpTo))}: compare this host's clock, which must have been set back.`;
      return refuse({ kind: 'journal', reason: 'forgotten', message, isTampering: false });
    }
    return undefined;
  }

  /** Every earlier attempt needs proof that it was not sent, or an operator's signed act. */
  #checkAttempts(payout: Payout, signed: SignedSend): SignedPermit {
    const attempts = this.#runtime.journal.unclearedAttempts(payout.payoutId, Infinity);
    if (attempts.length === 0) return { kind: 'granted', signed };
    const act = payout.act === undefined ? undefined : parseAct(payout.act);
    const verdict = this.#verifyAct(payout, signed.intent, act, attempts);
    if (verdict.kind === 'accepted') {
      return { kind: 'granted', signed: { ...signed, act: verdict.actHash, clears: attempts } };
    }
    const isOneOpen = attempts.length === 1 && !attempts.some((number) => this.#wasAccepted(payout, number));
    const advice = isOneOpen
      ? `Where it paid nothing, an operator states that with \`payouts release --attempt ${attempts.join()} --key FILE\`; else cancel it.`
      : NEW_PAYOUT_ID;
    const message = `The send journal has attempt ${attempts.join(', ')} of it as sent: ${verdict.message}. ${advice}`;
    return refuse({ kind: 'journal', reason: 'sent_before', message, isTampering: true });
  }

  #verifyAct(payout: Payout, intent: string, act: SignedAct | undefined, attempts: readonly number[]): ResumeVerdict {
    const { platformId, keyring, clock, journal } = this.#runtime;
    const [attempt] = attempts;
    if (act === undefined) return { kind: 'refused', message: 'there is no signed act' };
    if (attempts.length > 1 || attempt === undefined) {
      return { kind: 'refused', message: 'an act states of one attempt that it paid nothing' };
    }
    const { payoutId } = payout;
    if (this.#wasAccepted(payout, attempt)) {
      return { kind: 'refused', message: 'the gateway accepted it, which no act makes undone' };
    }
    const wanted = { act: 'resend', payoutId, intent, attempt } as const;
    const verdict = verifyAct(platformId, act, wanted, keyring, clock.wallNow());
    if (verdict.kind === 'refused') return verdict;
    if (journal.hasAct(verdict.actHash)) return { kind: 'refused', message: 'the act was used before' };
    if (Date.parse(act.at) < this.#decidableFrom(payoutId, attempt)) {
      return { kind: 'refused', message: 'the act was signed while the request could still be on its way' };
    }
    return { kind: 'accepted', actHash: verdict.actHash };
  }

  #wasAccepted({ payoutId }: Payout, attempt: number): boolean {
    return this.#runtime.journal.wasAccepted(payoutId, attempt);
  }

  /**
   * When an operator can know an attempt's outcome, wall clock, ms. A rejection is known at once. Otherwise its sender
   * told for how long the request may arrive. An attempt that is not among the newest is long over.
   */
  #decidableFrom(payoutId: string, attempt: number): number {
    const sends = this.#runtime.journal
      .lastSends(NEWEST_SENDS)
      .filter((send) => send.payoutId === payoutId && send.attempt === attempt && send.outcome?.kind !== 'rejected');
    return Math.max(
      0,
      ...sends.map(({ at, inFlightMs, outcome }) =>
        outcome?.kind === 'unknown' ? outcome.inFlightUntil : at + inFlightMs,
      ),
    );
  }
}

function refuse(hold: Hold): SignedPermit {
  return { kind: 'refused', hold };
}
