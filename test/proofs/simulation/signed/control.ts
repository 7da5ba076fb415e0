import { ACT_LIFETIME_MS } from '../../../../src/control/approvals/act.js';
import { INTENT_LIFETIME_MS, IntentSigner } from '../../../../src/control/intents/intent-signer.js';
import { hashIntent, intentOf } from '../../../../src/control/intents/intent.js';
import type { JournalLine } from '../../../../src/journal/journal-line.js';
import type { NewPayout, Payout } from '../../../../src/ledger/payout.js';
import { Random } from '../../../doubles/random.js';
import type { ResumeAuthority, SendAuthority } from '../../../../src/worker/sender/send-authority.js';
import type { JournalFile } from '../journal-file.js';
import type { Plan } from '../plan.js';
import { newPayout } from '../../../world/worker.js';
import { WALL_START, type WorldProcess } from '../../../world/world.js';
import type { ChanceWorld } from '../chance-world.js';
import { SignedBook } from './book.js';
import { KEYS, PLATFORM_ID, signAct, storeAct } from './keys.js';
import { TEST_AUDIENCE } from '../../../control/support/keys.js';

export const FIRST_BIRTH = WALL_START - 8 * 24 * 60 * 60 * 1_000;

const MINUTE_MS = 60_000;

const CLOCKS_WITHIN_MS = 2 * MINUTE_MS;

export class SimControl {
  /** A stream of its own: the faults of a seed are the same with and without signatures. */
  readonly random: Random;
  readonly book: SignedBook;
  readonly hasAttacker: boolean;
  readonly #world: ChanceWorld;
  readonly #operatorAheadMs: number;
  readonly #signed = new Map<string, NewPayout>();
  readonly #plan: Plan;
  readonly #policed: { payout(payoutId: string): NewPayout } | undefined;

  constructor(seed: number, world: ChanceWorld, plan: Plan, policed?: { payout(payoutId: string): NewPayout }) {
    this.#world = world;
    this.#policed = policed;
    this.random = new Random(seed ^ 0x5167_6e65);
    this.book = new SignedBook({ ...plan.settings, world });
    this.hasAttacker = this.random.chance(0.5) && policed === undefined;
    this.#operatorAheadMs = this.random.pick([0, this.random.between(0, 280_000)]);
    this.#plan = plan;
  }

  get wallNow(): number {
    return Math.round(WALL_START + this.#world.now);
  }

  /** A wall clock that is off by more holds payouts, and pauses, for as long: its host is repaired first. */
  withinTolerance(offsetMs: number): number {
    return Math.max(-CLOCKS_WITHIN_MS, Math.min(CLOCKS_WITHIN_MS, offsetMs));
  }

  journaled(process: WorldProcess, { journalId, isPaused }: JournalFile, line: JournalLine): void {
    const { situations } = this.#world;
    if ('paused' in line && isPaused) situations.meet('a pause is kept');
    if ('resumed' in line) situations.meet('a kept pause is ended by an act');
    if ('request' in line && line.signed?.act !== undefined) situations.meet('an act is used');
    this.book.journaled(process, journalId, line);
  }

  /** After a journal forgot expired intents, a clock that is set back would make them valid again. */
  setBack(process: WorldProcess): void {
    if (!this.#world.faultsOn || this.random.chance(0.5)) return;
    process.wallOffsetMs -= 2 * CLOCKS_WITHIN_MS;
    this.#world.note(() => `${process.name}: its wall clock is set back`);
  }

  /** Until when the intents expired that the journal forgets now and then, ms; undefined where it forgets none. */
  drawPruned(lines: readonly JournalLine[], now: number): number | undefined {
    if (this.#policed !== undefined || !this.random.chance(0.5)) return undefined;
    const expiries = lines.flatMap((line) =>
      'request' in line && line.signed !== undefined ? [line.signed.expiresAt] : [],
    );
    const expired = expiries.filter((expiresAt) => expiresAt <= now);
    if (expired.length > 0) this.#world.situations.meet('a journal forgets expired sends');
    return expired.length === 0 ? undefined : Math.max(...expired);
  }

  watch(authority: SendAuthority & ResumeAuthority): SendAuthority & ResumeAuthority {
    return {
      permit: (payout) => authority.permit(payout),
      judgeResume: (act, pausedAt) => {
        const verdict = authority.judgeResume(act, pausedAt);
        if (verdict.kind === 'refused') this.#world.situations.meet('an act that ends no pause is refused');
        return verdict;
      },
    };
  }

  payout(payoutId: string): NewPayout {
    return this.#signed.get(payoutId) ?? this.#sign(payoutId, this.#drawAge());
  }

  renew(payoutId: string): NewPayout {
    return this.#sign(payoutId, 0);
  }

  resendAct(payout: Payout): string | undefined {
    const { payoutId, attempt, signed } = payout;
    if (signed === undefined || attempt < 1) return undefined;
    const intent = hashIntent(intentOf(PLATFORM_ID, payout, signed));
    return this.book.knowsIntent(intent) ? this.#act('resend', { payoutId, intent, attempt }) : undefined;
  }

  resumeAct(): string {
    return this.#act('resume', { payoutId: '', intent: '', attempt: undefined });
  }

  #act(act: 'resend' | 'resume', about: { payoutId: string; intent: string; attempt: number | undefined }): string {
    const at = this.wallNow + this.#operatorAheadMs;
    const lifetime = this.random.chance(0.1) ? this.random.between(5_000, 60_000) : ACT_LIFETIME_MS;
    const times = { at: new Date(at).toISOString(), expiresAt: new Date(at + lifetime).toISOString() };
    const stated = { act, ...about, reason: 'looked it up', by: 'ann', ...times };
    const { text, hash } = storeAct(signAct(stated, KEYS.ann));
    this.book.noteAct(hash, stated);
    return text;
  }

  #sign(payoutId: string, ageMs: number): NewPayout {
    const payout = this.#policed?.payout(payoutId) ?? newPayout(payoutId);
    const clock = { wallNow: () => Math.round(this.wallNow - ageMs) };
    const signer = new IntentSigner({
      key: { name: 'shop', privateKey: KEYS.shop },
      platformId: PLATFORM_ID,
      audience: TEST_AUDIENCE,
      clock,
    });
    const { requestedBy } = payout;
    const signed = { ...payout, signed: signer.sign(payout, { requestedBy }) };
    this.#signed.set(payoutId, signed);
    this.book.noteIntent(signed);
    return signed;
  }

  /** Signed now, long ago so that it expires within the run, or by a clock that is ahead. */
  #drawAge(): number {
    const { random } = this;
    const { faultsForMs, times } = this.#plan;
    // What a clock that is ahead signs may seem younger than a journal that was begun after it was sent.
    const mayBeAhead = times.journalLost === 0;
    return random.pick([
      () => 0,
      () => 0,
      () => INTENT_LIFETIME_MS - random.between(0, faultsForMs),
      () => (mayBeAhead ? random.between(-9, -2) * MINUTE_MS : 0),
    ])();
  }
}
