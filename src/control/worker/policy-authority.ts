import { UNKNOWN_IN_FLIGHT_MS } from '../../base/settings.js';
import { fromUnits } from '../../base/decimal.js';
import { walletAndTagKey } from '../../gateway/wallet.js';
import type { SignedSend } from '../../journal/journal-line.js';
import type { Hold, Payout } from '../../ledger/payout.js';
import type { RuleUsage } from '../../ledger/reads/policy-report.js';
import type { Spend, SpendEvent } from '../../ledger/control-record.js';
import type { SendAuthority, SendPermit } from '../../worker/sender/send-authority.js';
import { type ApprovalCount, countApprovals, NO_APPROVALS, paymentOf } from '../approvals/approval.js';
import type { PolicedRuntime, PolicyInForce } from '../control-runtime.js';
import { findStranger } from '../keys/person.js';
import { decide, type Decision, toHold } from '../policy/decide.js';
import { DEFAULT_USD, type Policy } from '../policy/policy.js';
import { isEarly, type Verdict } from '../policy/rule.js';
import { type PaymentValue, UsdRates } from '../policy/usd-rates.js';
import { formatMicros } from '../policy/values.js';
import { Spending, type SpendingWorld } from './spending.js';
import { type FrontOfLine, WaitingLines } from './waiting-lines.js';

type AuthorityRuntime = Pick<
  PolicedRuntime,
  'platformId' | 'current' | 'keyring' | 'journal' | 'clock' | 'rateMoveEveryMs'
>;

/** Grants what the policy passes. It only holds: it never cancels a payout. */
export class PolicyAuthority implements SendAuthority {
  readonly #runtime: AuthorityRuntime;
  readonly #signatures: SendAuthority | undefined;
  readonly #spending: Spending;
  readonly #lines = new WaitingLines();
  readonly #keepMs: number;
  readonly rates: UsdRates;
  #loaded: Omit<PolicyInForce, 'longestWindowMs'>;
  /** The next check of holds that wait in no line, monotonic, ms. */
  readonly #due = new Map<string, number>();
  #unseen = new Set<string>();

  constructor(runtime: AuthorityRuntime, signatures: SendAuthority | undefined) {
    const { current, rateMoveEveryMs } = runtime;
    this.#runtime = runtime;
    this.#signatures = signatures;
    this.#loaded = snapshot(current);
    this.rates = new UsdRates(this.#loaded.policy.usd ?? DEFAULT_USD, rateMoveEveryMs);
    this.#keepMs = current.longestWindowMs + UNKNOWN_IN_FLIGHT_MS;
    this.#spending = new Spending(runtime, this.#keepMs, this.#world);
  }

  get hash(): string {
    this.#useCurrent();
    return this.#loaded.hash;
  }

  get usage(): RuleUsage[] {
    this.#useCurrent();
    this.catchUp();
    return describeUsage(this.#loaded.policy, this.#spending, this.#lines, this.#runtime.clock.now());
  }

  get hasEarlyRules(): boolean {
    return this.#loaded.policy.rules.some(isEarly);
  }

  /** @param ledger - anyone may have altered it: only spends that the journal lacks count */
  takeOver(ledger: readonly SpendEvent[]): void {
    this.#take('by wall clock');
    const idOf = (event: SpendEvent): string => (event.kind === 'begun' ? event.spend.id : event.id);
    const known = new Set(ledger.map(idOf).filter((id) => this.#spending.has(id)));
    this.#spending.take(
      ledger.filter((event) => !known.has(idOf(event))),
      'by wall clock',
    );
    this.#lines.clear();
    this.#due.clear();
  }

  /** Remembers what the process with the lease spends. Call it now and then. */
  standBy(): void {
    this.#take('by wall clock');
  }

  /** Takes what this process has spent. Call it often: a spend ages from the first call after its answer. */
  catchUp(): void {
    this.#take('now');
  }

  #take(placing: 'by wall clock' | 'now'): void {
    const events = this.#runtime.journal.takeSpends();
    this.#spending.take(events, placing);
    for (const event of events) if (event.kind === 'begun') this.leave(event.spend.payoutId);
  }

  /**
   * Lines to check, each from its front: those whose first payout has room, and a few others, whose first may be gone.
   */
  findFronts(): string[][] {
    this.#useCurrent();
    const now = this.#runtime.clock.now();
    const hasRoom = ({ rule, bucket, value }: FrontOfLine): boolean => {
      const { unknown, sum } = this.#spending.view(rule, bucket);
      const limit = this.#loaded.policy.rules.find(({ name }) => name === rule)?.cap?.limit ?? 0n;
      return unknown === undefined && sum(now) + value <= limit;
    };
    return this.#lines.take(hasRoom, OTHER_FRONTS);
  }

  findDue(limit: number): string[] {
    const now = this.#runtime.clock.now();
    const due: string[] = [];
    for (const [payoutId, at] of this.#due) {
      if (due.length === limit) break;
      if (at <= now) due.push(payoutId);
    }
    return due;
  }

  knows(payoutId: string): boolean {
    return this.#lines.has(payoutId) || this.#due.has(payoutId);
  }

  /** Call it when a payout is neither queued nor held any more. */
  leave(payoutId: string): void {
    this.#lines.leave(payoutId);
    this.#due.delete(payoutId);
  }

  /** Why a payout could not be sent however much room there was, so that people can approve it before its turn. */
  checkEarly(payout: Payout): Hold | undefined {
    const permit = this.#signatures?.permit(payout) ?? { kind: 'granted' };
    if (permit.kind === 'refused') return undefined;
    const { policy } = this.#loaded;
    const early = { ...policy, uncovered: 'send', rules: policy.rules.filter(isEarly) } as const;
    const { verdict } = this.#decide(early, payout, permit.signed).decision;
    if (verdict.kind === 'send' || (verdict.kind === 'wait' && verdict.until === undefined)) return undefined;
    this.#remember(payout.payoutId, verdict);
    return toHold(verdict);
  }

  /** Notes when to check a payout again. Approvals and a new policy reach the worker in other ways. */
  #remember(payoutId: string, verdict: Verdict): void {
    const { clock } = this.#runtime;
    const until = verdict.kind === 'send' ? undefined : verdict.until;
    const comesByItself = verdict.kind === 'wait' ? !this.#lines.has(payoutId) : until !== undefined;
    if (!comesByItself) {
      this.#due.delete(payoutId);
      return;
    }
    const waitMs = until === undefined ? AGAIN_MS : Math.max(0, until - clock.wallNow());
    this.#due.set(payoutId, clock.now() + waitMs);
  }

  /** Addresses to note as seen; each is returned once. */
  takeUnseen(): string[] {
    const unseen = [...this.#unseen];
    this.#unseen = new Set();
    return unseen;
  }

  async keepRejections(payouts?: readonly Payout[]): Promise<void> {
    await this.#signatures?.keepRejections?.(payouts);
  }

  permit(payout: Payout): SendPermit {
    const permit = this.#signatures?.permit(payout) ?? { kind: 'granted' };
    if (permit.kind === 'refused') {
      this.leave(payout.payoutId);
      return permit;
    }
    this.#useCurrent();
    this.catchUp();
    // It may be sent again: its earlier attempts paid nothing.
    if (payout.attempt > 0) this.#spending.releasePayout(payout.payoutId);
    const { decision, approvals, value } = this.#decide(this.#loaded.policy, payout, permit.signed);
    const { worth, coins } = value;
    this.#keepInLine(payout.payoutId, decision);
    const { verdict } = decision;
    this.#remember(payout.payoutId, verdict);
    if (verdict.kind !== 'send') return { kind: 'refused', hold: toHold(verdict) };
    const { hash: policy } = this.#loaded;
    const judged = {
      policy,
      ...(worth.kind === 'known' ? { usd: worth.micros.toString() } : {}),
      ...(payout.symbol !== undefined && typeof coins === 'string' ? { coins } : {}),
      ...(approvals.counted.length === 0 ? {} : { approvals: approvals.counted }),
    };
    return { ...permit, counted: { judged, keepMs: this.#keepMs } };
  }

  #decide(
    policy: Policy,
    payout: Payout,
    signed: SignedSend | undefined,
  ): { readonly decision: Decision; readonly approvals: ApprovalCount; readonly value: PaymentValue } {
    const { clock, journal, keyring } = this.#runtime;
    const { payoutId, paymentId, addressTo } = payout;
    const approvals = this.#countApprovals(payout, signed);
    const now = clock.now();
    const value = this.rates.valueOf(payout, now);
    const { worth, coins: amount } = value;
    const subject = { paymentId, amount, addressTo, signer: signed?.key };
    const address = walletAndTagKey(addressTo);
    const addressSeenAt = journal.seenAt(address);
    if (addressSeenAt === undefined && this.#asksForNewAddresses) this.#unseen.add(address);
    const { isListed } = this.#loaded;
    const decision = decide(policy, subject, {
      ...{ now, wallNow: clock.wallNow(), worth, addressSeenAt, isListed },
      window: (rule, bucket) => ({
        ...this.#spending.view(rule, bucket),
        ahead: this.#lines.ahead(rule, bucket, payoutId),
      }),
      approvedBy: approvals.approvedBy,
      stranger: keyring && findStranger(payout.signed?.requestedBy, keyring.keys),
    });
    return { decision, approvals, value };
  }

  /** A granted payout keeps its place until it is sent. One held for another reason must not block the line. */
  #keepInLine(payoutId: string, { verdict, all }: Decision): void {
    if (verdict.kind === 'wait') this.#lines.stand(payoutId, all);
    else if (verdict.kind !== 'send') this.#lines.leave(payoutId);
  }

  #countApprovals(given: Payout, signed: SignedSend | undefined): ApprovalCount {
    const { payoutId, approvals = [], signed: stored } = given;
    const { platformId, keyring, clock } = this.#runtime;
    if (keyring === undefined || signed === undefined) return NO_APPROVALS;
    const signedBy = keyring.find(signed.key)?.person ?? '';
    const requestedBy = stored?.requestedBy;
    const payout = { platformId, payoutId, intent: signed.intent, signedBy, requestedBy, payment: paymentOf(given) };
    const [lifetimeMs, now] = [this.#loaded.policy.approvalsExpireAfterMs, clock.wallNow()];
    return countApprovals(payout, approvals, { keyring, lifetimeMs, now });
  }

  get #asksForNewAddresses(): boolean {
    return this.#loaded.policy.rules.some(({ when }) => when.address === 'new');
  }

  #useCurrent(): void {
    const { current } = this.#runtime;
    if (current.policy === this.#loaded.policy) return;
    this.#loaded = snapshot(current);
    this.rates.use(this.#loaded.policy.usd ?? DEFAULT_USD);
    this.#spending.use(this.#world);
    // Rules may have other names now. The lines form again in the order of the holds.
    this.#lines.clear();
  }

  get #world(): SpendingWorld {
    const { policy, isListed } = this.#loaded;
    const valueOf = (spend: Spend): PaymentValue => this.rates.valueOf(spend, this.#runtime.clock.now());
    return { policy, isListed, valueOf };
  }
}

function snapshot({ policy, hash, isListed }: PolicyInForce): Omit<PolicyInForce, 'longestWindowMs'> {
  return { policy, hash, isListed };
}

/** A wait without a known end is checked again after this time. */
const AGAIN_MS = 30_000;

/** Lines without room to check at each call: their first payout may have been cancelled. */
const OTHER_FRONTS = 20;

const MOST_BUCKETS = 10;

/** @param now - monotonic, ms */
function describeUsage(
  { rules }: Policy,
  spending: Pick<Spending, 'view' | 'bucketsOf'>,
  lines: Pick<WaitingLines, 'wanted'>,
  now: number,
): RuleUsage[] {
  return rules.flatMap(({ name, cap, when }) => {
    if (cap?.withinMs === undefined) return [];
    const { unit, limit, withinMs, per = null } = cap;
    const show = (value: bigint): string =>
      unit === 'usd' ? formatMicros(value) : unit === 'count' ? value.toString() : fromUnits(value);
    const all = [...spending.bucketsOf(name, now)].sort(([, one], [, other]) => (one < other ? 1 : -1));
    const shown = (all.length === 0 && per === null ? [['', 0n] as const] : all).slice(0, MOST_BUCKETS);
    const buckets = shown.map(([bucket, spent]) => ({
      ...{ bucket, spent: show(spent), wanted: show(lines.wanted(name, bucket)), ratio: toRatio(spent, limit) },
    }));
    const unknown = spending.view(name, '').unknown ?? null;
    const [paymentId] = unit === 'amount' ? (when.paymentId ?? []) : [];
    return [
      {
        rule: name,
        unit,
        ...(paymentId !== undefined && { paymentId }),
        limit: show(limit),
        withinMs,
        per,
        buckets,
        unknown,
      },
    ];
  });
}

function toRatio(spent: bigint, limit: bigint): number {
  if (limit === 0n) return spent === 0n ? 0 : 1;
  return Number((spent * 10_000n) / limit) / 10_000;
}
