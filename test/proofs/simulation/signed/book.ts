import type { Act } from '../../../../src/control/approvals/act.js';
import { hashIntent, intentOf } from '../../../../src/control/intents/intent.js';
import type { WithdrawRequest } from '../../../../src/gateway/gateway.js';
import type { JournalLine, SendLine } from '../../../../src/journal/journal-line.js';
import type { NewPayout } from '../../../../src/ledger/payout.js';
import type { World, WorldProcess } from '../../../world/world.js';
import { PLATFORM_ID } from './keys.js';

interface JournalRecord {
  pausedBy: string | undefined;
  pausedAt: number;
  readonly used: Map<string, string>;
}

export interface SignedBookOptions {
  readonly world: Pick<World, 'now' | 'fail'>;
  readonly guardMs: number;
  readonly inFlightMaxMs: number;
}

type Payment = Pick<WithdrawRequest, 'paymentId' | 'amount' | 'addressTo'> & { readonly symbol?: string | undefined };

/**
 * Everything that was really signed in a run, beside the system: what is journaled and written is held against it. It knows
 * nothing of signatures, so a mistake in verifying them is no mistake of the judge.
 */
export class SignedBook {
  readonly #options: SignedBookOptions;
  readonly #payments = new Map<string, number>();
  readonly #intents = new Map<string, { readonly payoutId: string; readonly payment: string }>();
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

  #begins({ name }: WorldProcess, journal: JournalRecord, line: SendLine): void {
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

  #resumed(journal: JournalRecord, hash: string): void {
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

function describe({ paymentId, amount, addressTo, symbol }: Payment): string {
  return JSON.stringify([paymentId, amount, addressTo, symbol ?? '']);
}
