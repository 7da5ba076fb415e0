import { every } from '../../base/clock.js';
import type { RejectionNote } from '../../journal/journal-line.js';
import type { Hold, Payout } from '../../ledger/payout.js';
import type { SendAuthority, SendPermit } from '../../worker/sender/send-authority.js';
import { countRejections, holdRejected, type Rejection } from '../approvals/rejection.js';
import { hashApproval } from '../approvals/approval.js';
import type { ControlRuntime } from '../control-runtime.js';
import type { HeldPayouts } from './hold-releaser.js';

type RejectedBy = Pick<Payout, 'payoutId' | 'approvals'>;

type RejectionRuntime = Pick<ControlRuntime, 'platformId' | 'keyring'> & {
  readonly journal: Pick<ControlRuntime['journal'], 'rejectionsOf' | 'noteRejected' | 'noteUnrejected'>;
};

/**
 * Refuses what a person rejected, before all other checks and in every mode. The journal keeps a rejection, which Redis may
 * lose or an attacker remove, until its person takes it back.
 */
export class RejectionAuthority implements SendAuthority {
  readonly #runtime: RejectionRuntime;
  readonly #inner: SendAuthority | undefined;
  readonly #rejected = new Map<string, RejectionNote>();
  readonly #takenBack = new Map<string, Pick<RejectionNote, 'payoutId' | 'rejection'>>();

  /** @param inner - decides what nobody rejected; undefined if all of it may be sent */
  constructor(runtime: RejectionRuntime, inner: SendAuthority | undefined) {
    this.#runtime = runtime;
    this.#inner = inner;
  }

  permit(payout: Payout): SendPermit {
    const hold = this.#find(payout);
    if (hold !== undefined) return { kind: 'refused', hold };
    return this.#inner?.permit(payout) ?? { kind: 'granted' };
  }

  /** Call it also before a send: the journal must not show a payout as sent after a rejection that was taken back. */
  async keepRejections(payouts: readonly Payout[] = []): Promise<void> {
    const { journal } = this.#runtime;
    for (const payout of payouts) this.#find(payout);
    for (const [hash, { payoutId, rejection, by, person }] of this.#rejected) {
      await journal.noteRejected({ payoutId, rejection, by, ...(person === undefined ? {} : { person }) });
      this.#rejected.delete(hash);
    }
    for (const [hash, { payoutId, rejection }] of this.#takenBack) {
      await journal.noteUnrejected({ payoutId, rejection });
      this.#takenBack.delete(hash);
    }
  }

  #find({ payoutId, approvals = [] }: Payout): Hold | undefined {
    const { platformId, keyring, journal } = this.#runtime;
    const journaled = journal.rejectionsOf(payoutId);
    if (approvals.length === 0 && journaled.length === 0) return undefined;
    if (keyring === undefined) return this.#findUnverified({ payoutId, approvals }, journaled);
    const { standing, takenBack } = countRejections({ platformId, payoutId, approvals }, keyring, journaled);
    const isKept = ({ rejection }: Rejection): boolean => journaled.some((note) => note.rejection === rejection);
    for (const each of standing) if (hasPerson(each) && !isKept(each)) this.#rejected.set(each.rejection, each);
    for (const each of takenBack) if (isKept(each)) this.#takenBack.set(each.rejection, each);
    const [first] = standing;
    return first && holdRejected({ person: first.person, by: first.by, reason: first.approval?.reason ?? '' });
  }

  /**
   * Without a keyring Redis decides what is sent, so it also decides what is not. The journal keeps that, too: a Redis that
   * came back older has forgotten it. What a worker with a keyring journaled is not ended there by what nobody verified.
   */
  #findUnverified({ payoutId, approvals = [] }: RejectedBy, journaled: readonly RejectionNote[]): Hold | undefined {
    const { platformId } = this.#runtime;
    const ended = new Set(approvals.flatMap(({ decision, intent }) => (decision === 'unreject' ? [intent] : [])));
    const notes = new Map<string, RejectionNote & { readonly reason?: string }>(
      journaled.map((note) => [note.rejection, note]),
    );
    for (const each of approvals) {
      if (each.decision !== 'reject') continue;
      const [rejection, { by, reason }] = [hashApproval(platformId, each), each];
      const known = notes.get(rejection);
      notes.set(rejection, { payoutId, rejection, by, ...known, reason });
      if (known === undefined && !ended.has(rejection)) this.#rejected.set(rejection, { payoutId, rejection, by });
    }
    for (const note of journaled)
      if (ended.has(note.rejection) && note.person === undefined) this.#takenBack.set(note.rejection, note);
    const first = [...notes.values()].find(({ rejection }) => !ended.has(rejection));
    return first && holdRejected({ person: first.person, by: first.by, reason: first.reason ?? '' });
  }
}

function hasPerson(rejection: Rejection): rejection is Rejection & Required<RejectionNote> {
  return rejection.person !== undefined;
}

const EVERY_MS = 1_000;
const PAGE = 100;

/** Has the journal learn of rejections that hold payouts, one page a second, for as long as this process sends. */
export async function keepHeldRejections(
  { clock, logger }: Pick<ControlRuntime, 'clock' | 'logger'>,
  source: Pick<HeldPayouts, 'held'>,
  authority: RejectionAuthority,
  signal: AbortSignal,
): Promise<void> {
  let after: string | undefined;
  const check = async (): Promise<void> => {
    const { payouts, next } = await source.held(after, PAGE);
    await authority.keepRejections(payouts);
    after = next;
  };
  const onError = ({ message }: Error): void => {
    logger.warn({ error: message }, 'rejections could not be kept in the journal, will try again');
  };
  await every(EVERY_MS, check, { clock, signal, onError });
}
