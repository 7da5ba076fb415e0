import type { KeyObject } from 'node:crypto';
import {
  hashAct,
  serializeAct,
  type Act,
  type SignedAct,
  formatAct,
  ACT_LIFETIME_MS,
} from '../../../../src/control/approvals/act.js';
import { formatApproval } from '../../../../src/control/approvals/approval.js';
import { INTENT_LIFETIME_MS, IntentSigner } from '../../../../src/control/intents/intent-signer.js';
import { hashIntent, intentOf } from '../../../../src/control/intents/intent.js';
import { signText } from '../../../../src/control/keys/ed25519.js';
import type { WithdrawRequest } from '../../../../src/gateway/gateway.js';
import type { JournalLine, SendLine } from '../../../../src/journal/journal-line.js';
import type { ApprovalDecision, SignedApproval } from '../../../../src/ledger/control-record.js';
import type { Payout, NewPayout } from '../../../../src/ledger/payout.js';
import type { ResumeAuthority, SendAuthority } from '../../../../src/worker/sender/send-authority.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../../../control/support/keys.js';
import { Random } from '../../../doubles/random.js';
import { newPayout } from '../../../world/worker.js';
import { type World, type WorldProcess, WALL_START } from '../../../world/world.js';
import type { JournalFile } from '../journal-file.js';
import type { Plan } from '../plan.js';
import type { ChanceWorld } from '../simulation.js';

export const PLATFORM_ID = 1;

export const KEYS = { shop: testKey(1), ann: testKey(2), thief: testKey(3) } as const satisfies Record<
  string,
  KeyObject
>;

export type ApproverKey = Readonly<{
  name: string;
  person: string;
  private: KeyObject;
}>;

export const APPROVER_KEYS: readonly ApproverKey[] = (
  [
    ['ann-1', 'Ann'],
    ['ann-2', 'Ann'],
    ['bob-1', 'Bob'],
    ['bob-2', 'Bob'],
    ['cy-1', 'Cy'],
    ['cy-2', 'Cy'],
    ['dee-1', 'Dee'],
    ['shop-1', 'Shop'],
    ['eve-1', 'Eve'],
  ] as const
).map(([name, person], number) => ({ name, person, private: testKey(10 + number) }));

export const KEYRING = keyringOf(
  keyEntry(KEYS.shop),
  keyEntry(KEYS.ann, { name: 'ann', role: 'operator', person: 'Ann' }),
  ...APPROVER_KEYS.map(({ name, person, private: key }) => keyEntry(key, { name, person, role: 'approver' })),
);

export function signAct(stated: Act, key: KeyObject): SignedAct {
  const act = { audience: TEST_AUDIENCE, ...stated };
  return { ...act, signature: signText(formatAct(PLATFORM_ID, act), key) };
}

export function storeAct(act: SignedAct): Readonly<{ text: string; hash: string }> {
  return { text: serializeAct(act), hash: hashAct(PLATFORM_ID, act) };
}

export function intentHashOf(payout: Payout): string {
  if (payout.signed === undefined) throw new Error('it is not signed');
  return hashIntent(intentOf(PLATFORM_ID, payout, payout.signed));
}

export function signApproval(
  key: ApproverKey,
  { payoutId }: Payout,
  about: Payout,
  decision: ApprovalDecision,
  [at, expiresAt]: readonly [at: number, expiresAt: number],
): SignedApproval {
  const times = { at: new Date(at).toISOString(), expiresAt: new Date(expiresAt).toISOString() };
  const intent = intentHashOf(about);
  const stated = { audience: TEST_AUDIENCE, payoutId, intent, decision, by: key.name, ...times };
  return { ...stated, signature: signText(formatApproval(PLATFORM_ID, stated), key.private) };
}

interface JournalRecord {
  pausedBy: string | undefined;
  pausedAt: number;
  readonly used: Map<string, string>;
}

type SignedBookOptions = Readonly<{
  world: Pick<World, 'now' | 'fail'>;
  guardMs: number;
  inFlightMaxMs: number;
}>;

type Payment = Pick<WithdrawRequest, 'paymentId' | 'amount' | 'addressTo'> & { readonly symbol?: string | undefined };

/**
 * Everything that was really signed in a run, beside the system: what is journaled and written is held against it. It knows
 * nothing of signatures, so a mistake in verifying them is no mistake of the judge.
 */
class SignedBook {
  readonly #options: SignedBookOptions;
  readonly #payments = new Map<string, number>();
  readonly #intents = new Map<string, Readonly<{ payoutId: string; payment: string }>>();
  readonly #acts = new Map<string, Act>();
  readonly #journals = new Map<string, JournalRecord>();
  readonly #triedAt = new Map<string, number>();
  readonly #sends = new Set<string>();

  constructor(options: SignedBookOptions) {
    this.#options = options;
  }

  noteIntent(payout: NewPayout): void {
    const { signed } = payout;
    if (signed === undefined) return;
    const payment = describe(payout);
    const intent = hashIntent(intentOf(PLATFORM_ID, { ...payout, notBefore: undefined }, signed));
    this.#intents.set(intent, { payoutId: payout.payoutId, payment });
    this.#payments.set(payment, Math.max(this.#payments.get(payment) ?? 0, Date.parse(signed.expiresAt)));
  }

  noteAct(hash: string, act: Act): void {
    this.#acts.set(hash, act);
  }

  knowsIntent(intent: string): boolean {
    return this.#intents.has(intent);
  }

  mayArrive(payoutId: string): boolean {
    const { world, guardMs, inFlightMaxMs } = this.#options;
    return world.now - (this.#triedAt.get(payoutId) ?? -Infinity) <= 1.002 * (guardMs + inFlightMaxMs) + 1_000;
  }

  isComplete(lines: readonly JournalLine[]): boolean {
    const known = new Set(lines.flatMap((line) => ('request' in line ? [line.token] : [])));
    return [...this.#sends].every((token) => known.has(token));
  }

  written(process: WorldProcess, request: Payment): void {
    const { world, guardMs } = this.#options;
    const expiresAt = this.#payments.get(describe(request));
    if (expiresAt === undefined)
      world.fail(`unsigned: ${process.name} writes ${describe(request)}, which nobody signed`);
    else if (process.wallNow() - expiresAt >= guardMs) {
      world.fail(`unsigned: ${process.name} writes ${request.addressTo} after its signature expired`);
    }
  }

  journaled(process: WorldProcess, journalId: string, line: JournalLine): void {
    const journal = this.#journals.get(journalId) ?? { pausedBy: undefined, pausedAt: 0, used: new Map() };
    this.#journals.set(journalId, journal);
    if ('paused' in line) Object.assign(journal, { pausedBy: process.name, pausedAt: line.paused.at });
    else if ('resumed' in line) this.#resumed(journal, line.resumed.act);
    else if ('request' in line) this.#begins(process, journal, line);
  }

  #begins({ name }: WorldProcess, journal: JournalRecord, line: SendLine) {
    const { world } = this.#options;
    const { payoutId, attempt, token, signed, request } = line;
    this.#triedAt.set(payoutId, world.now);
    this.#sends.add(token);
    const what = `${name} begins ${payoutId} ${attempt}`;
    const intent = this.#intents.get(signed?.intent ?? '');
    if (intent?.payoutId !== payoutId || intent.payment !== describe(request)) {
      world.fail(`unsigned: ${what} with an intent that is not of it`);
    }
    if (journal.pausedBy === name) world.fail(`paused: ${what}, although it noted a pause that no operator ended`);
    if (signed?.act === undefined) return;
    const act = this.#acts.get(signed.act);
    const isOfIt = act?.act === 'resend' && act.payoutId === payoutId && act.intent === signed.intent;
    if (!isOfIt || signed.clears?.join() !== String(act.attempt)) {
      world.fail(`unsigned: ${what} with an act that is not of it: ${JSON.stringify(act)}`);
    }
    if ((journal.used.get(signed.act) ?? token) !== token) world.fail(`unsigned: ${what} with an act that was used`);
    journal.used.set(signed.act, token);
  }

  #resumed(journal: JournalRecord, hash: string) {
    const { world } = this.#options;
    const act = this.#acts.get(hash);
    if (act?.act !== 'resume') world.fail('paused: it was ended by no act of an operator');
    else if (journal.pausedBy !== undefined && Date.parse(act.at) < journal.pausedAt) {
      world.fail('paused: it was ended by an act from before it');
    }
    // Noted late, by a process that was stopped: the pause since then stands.
    if (journal.used.has(hash)) return;
    journal.used.set(hash, 'resume');
    journal.pausedBy = undefined;
  }
}

function describe({ paymentId, amount, addressTo, symbol }: Payment) {
  return JSON.stringify([paymentId, amount, addressTo, symbol ?? '']);
}

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

  #act(act: 'resend' | 'resume', about: { payoutId: string; intent: string; attempt: number | undefined }) {
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
  #drawAge() {
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
