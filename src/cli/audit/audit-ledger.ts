import type { Spend } from '../../ledger/control-record.js';
import { verifyReceipt } from '../../control/intents/receipt.js';
import { isSameGatewayId } from '../../base/fields.js';
import { identify, type JournalEntry, type JournalItem } from '../../journal/journal-line.js';
import type { JournalReport } from '../../control/audit/verify-journal.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import { type AuditedRecord, readAudited, scanPayoutIds } from '../../ledger/reads/read-audited.js';
import { readSpends } from '../../ledger/read-spends.js';
import type { PayoutState } from '../../ledger/states.js';
import { compareAccepted, compareSend, type SendComparison, toUnreadable } from './compare-send.js';
import { type AuditContext, type Finding, findingOf, identifyFinding } from './finding.js';
import { findRejection, keysOfThen, verifyApprovals, verifySend } from './verify-send.js';

export interface LedgerAudit {
  readonly compared: number;
  readonly removed: number;
  readonly verified: number;
  /** Signed sends without a finding that could not be verified in full. */
  readonly notVerifiable: number;
  readonly unsigned: number;
  /** Payouts that Redis lost and the application enqueued again with another signature. */
  readonly signedAgain: number;
  readonly before: number;
  /** Payouts whose state rests on an operator's statement. */
  readonly onWord: number;
  readonly revokedKeys: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
}

/** Records a round trip: about 1 MB. */
const PAGE = 500;

/**
 * Compares the journals with the ledger, both ways. A send that begins after the journals were read looks missing: a
 * second pass drops such findings.
 */
export async function auditLedger(journals: readonly AuditedJournal[], context: AuditContext): Promise<LedgerAudit> {
  const first = await new Pass(journals, context).run();
  if (first.findings.length === 0 || context.connection === undefined) return first;
  const found = new Set(first.findings.map(({ payoutId }) => payoutId));
  const again = await new Pass(journals, { ...context, onProgress: () => undefined }).run(found);
  const still = new Set(again.findings.map(identifyFinding));
  return { ...first, findings: first.findings.filter((finding) => still.has(identifyFinding(finding))) };
}

class Pass {
  readonly #journals: readonly AuditedJournal[];
  readonly #context: AuditContext;
  /** Redis may name a payout twice. */
  readonly #findings = new Map<string, Finding>();
  readonly #counts = { compared: 0, removed: 0, verified: 0, notVerifiable: 0, unsigned: 0, signedAgain: 0, before: 0 };
  readonly #onWord = new Set<string>();
  readonly #revokedKeys: Record<string, number> = {};
  /** By payout, if it has several attempts. */
  readonly #accepted = new Map<string, JournalEntry[]>();
  #done = 0;

  constructor(journals: readonly AuditedJournal[], context: AuditContext) {
    this.#journals = journals;
    this.#context = context;
  }

  async run(only?: ReadonlySet<string>): Promise<LedgerAudit> {
    const journals = this.#journals;
    const { connection } = this.#context;
    const spends = connection === undefined ? new Map<string, Spend>() : await readBegunSpends(connection);
    const journaled = await readJournaledSends(journals);
    for (const { items } of journals) {
      const isWanted = ({ payoutId }: JournalEntry): boolean => only?.has(payoutId) ?? true;
      for await (const page of pagesOfSends(items(), isWanted)) await this.#checkSends(page, spends, journaled);
    }
    for (const sends of this.#accepted.values()) this.#note(...compareAccepted(sends));
    if (connection !== undefined) {
      const pages = only === undefined ? scanPayoutIds(connection) : [[...only]];
      for await (const payoutIds of pages) await this.#checkPayouts(connection, payoutIds, journaled);
      const unknown = [...spends.values()].filter(
        ({ payoutId, attempt }) => !isJournaled(journaled, payoutId, attempt),
      );
      await this.#checkSpends(connection, unknown);
    }
    const { size: onWord } = this.#onWord;
    return { ...this.#counts, onWord, revokedKeys: this.#revokedKeys, findings: [...this.#findings.values()] };
  }

  async #checkSends(
    sends: readonly JournalEntry[],
    spends: ReadonlyMap<string, Spend>,
    journaled: JournaledSends,
  ): Promise<void> {
    const { connection } = this.#context;
    const payoutIds = sends.map(({ payoutId }) => payoutId);
    const records = connection && (await readAudited(connection, payoutIds));
    for (const [index, send] of sends.entries()) {
      if (send.signed === undefined) this.#counts.unsigned += 1;
      this.#noteKey(send.signed?.key);
      const attempts = journaled.get(send.payoutId) ?? [];
      if (attempts.length > 1 && send.outcome?.kind === 'accepted') {
        this.#accepted.set(send.payoutId, [...(this.#accepted.get(send.payoutId) ?? []), send]);
      }
      const hasLater = attempts.some((attempt) => attempt > send.attempt);
      await this.#checkSend(send, records?.[index], hasLater);
      const spend = spends.get(identify(send));
      const wrong = spend && compareSpend(send, spend);
      if (wrong !== undefined) this.#note(wrong);
    }
    this.#progress(sends.length);
  }

  async #checkSend(send: JournalEntry, found: AuditedRecord | undefined, hasLater: boolean): Promise<void> {
    const comparison = found && (await this.#compare(send, found, hasLater));
    if (comparison?.isOnWord) this.#onWord.add(send.payoutId);
    const isAltered = comparison?.findings.some(({ kind }) => kind === 'altered') ?? false;
    const payout = found?.kind === 'payout' ? found.payout : undefined;
    if (found?.kind === 'removed') this.#counts.removed += 1;
    else if (found !== undefined) this.#counts.compared += 1;
    // The altered fields say more than a signature that fails.
    const verification = verifySend(send, isAltered ? undefined : payout, this.#context);
    if (verification.isSignedAgain) this.#counts.signedAgain += 1;
    // Only the record has the approvals.
    const isWhole = payout !== undefined && !verification.isSignedAgain;
    const approvals = isWhole ? verifyApprovals(send, payout, this.#context) : [];
    const rejections = payout === undefined ? [] : findRejection(send, payout, this.#context);
    const findings = [...(comparison?.findings ?? []), ...verification.findings, ...approvals, ...rejections];
    this.#note(...findings);
    if (send.signed === undefined || findings.length > 0) return;
    const isVerified = verification.isVerified && (isWhole || (send.judged?.approvals ?? []).length === 0);
    this.#counts[isVerified ? 'verified' : 'notVerifiable'] += 1;
  }

  async #compare(send: JournalEntry, found: AuditedRecord, hasLater: boolean): Promise<SendComparison> {
    const { retentionDays, isArchived } = this.#context;
    const removal = { hasLater, retentionDays, isArchived: false, now: Date.now() };
    const comparison = compareSend(send, found, removal);
    if (found.kind !== 'removed' || !comparison.findings.some(({ kind }) => kind === 'removed')) return comparison;
    return compareSend(send, found, { ...removal, isArchived: await isArchived(send.payoutId, found.state) });
  }

  #noteKey(key: string | undefined): void {
    if (key === undefined || this.#context.keyring?.find(key)?.revoked !== true) return;
    this.#revokedKeys[key] = (this.#revokedKeys[key] ?? 0) + 1;
  }

  async #checkPayouts(
    connection: LedgerConnection,
    payoutIds: readonly string[],
    journaled: JournaledSends,
  ): Promise<void> {
    for (const [index, found] of (await readAudited(connection, payoutIds)).entries()) {
      if (found.kind === 'unreadable') this.#note(toUnreadable(payoutIds[index] ?? '', found.message));
      if (found.kind !== 'payout') continue;
      const { payout } = found;
      this.#noteKey(payout.receipt?.key);
      const result = this.#checkPayout(payout, isJournaled(journaled, payout.payoutId, payout.attempt));
      if (result === 'before') this.#counts.before += 1;
      else if (result === 'on_word') this.#onWord.add(payout.payoutId);
      else if (result !== 'journaled') this.#note(result);
    }
    this.#progress(payoutIds.length);
  }

  #checkPayout(payout: Payout, isKnown: boolean): Finding | 'journaled' | 'before' | 'on_word' {
    const { state, attempt, gatewayId } = payout;
    const receipt = checkReceipt(payout, this.#context);
    if (receipt !== undefined) return receipt;
    if (!ANSWERED.has(state) || isKnown) return 'journaled';
    if (isSameGatewayId(payout.vouchedGatewayId, gatewayId)) return 'on_word';
    if (begunAt(payout) < coveredFrom(this.#journals)) return 'before';
    const payment = gatewayId === undefined ? '' : `, paid as ${gatewayId}`;
    const message = `the ledger says ${state}${payment}, attempt ${attempt}; no journal has that send`;
    return findingOf(payout, 'not_in_journal', message, INVENTED);
  }

  async #checkSpends(connection: LedgerConnection, spends: readonly Spend[]): Promise<void> {
    for (let start = 0; start < spends.length; start += PAGE) {
      const page = spends.slice(start, start + PAGE);
      const payoutIds = page.map(({ payoutId }) => payoutId);
      const records = await readAudited(connection, payoutIds);
      this.#note(...page.flatMap((spend, index) => checkSpend(spend, records[index]) ?? []));
    }
  }

  #note(...findings: readonly Finding[]): void {
    for (const finding of findings) this.#findings.set(identifyFinding(finding), finding);
  }

  #progress(count: number): void {
    this.#context.onProgress((this.#done += count));
  }
}

/** By attempt, without spends known to be unpaid. */
async function readBegunSpends(connection: LedgerConnection): Promise<Map<string, Spend>> {
  const spends = new Map<string, Spend>();
  for (const event of await readSpends(connection)) {
    if (event.kind === 'begun') spends.set(event.spend.id, event.spend);
    else if (event.kind === 'unpaid') spends.delete(event.id);
  }
  return spends;
}

export async function* pagesOfSends(
  items: AsyncIterable<JournalItem>,
  isWanted: (send: JournalEntry) => boolean,
): AsyncGenerator<JournalEntry[]> {
  let page: JournalEntry[] = [];
  for await (const item of items) {
    if (!('payoutId' in item) || !isWanted(item)) continue;
    page.push(item);
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** The gateway answered, so a worker had journaled the send. */
const ANSWERED: ReadonlySet<PayoutState> = new Set(['in_progress', 'completed', 'failed', 'rejected']);

const INVENTED =
  'Ask the gateway for it. Where another host sent it, name the folder of its journal with --journal; else someone has written it into Redis.';

/** A receipt is optional: a worker without a key writes none. */
function checkReceipt(payout: Payout, { platformId, keyring }: AuditContext): Finding | undefined {
  const isSigned = payout.state === 'completed' || payout.state === 'failed';
  if (!isSigned || payout.receipt === undefined || keyring === undefined) return undefined;
  const verdict = verifyReceipt(platformId, payout, keysOfThen(keyring));
  if (verdict.kind === 'verified') return undefined;
  const action = 'Book the payment only once the gateway has confirmed it.';
  return findingOf(payout, 'receipt', `its receipt does not count: ${verdict.message}`, action);
}

/** NaN if the history does not say: NaN is not below any time. */
function begunAt({ history, createdAt }: Payout): number {
  return Date.parse(history.findLast(({ to }) => to === 'sending')?.at ?? createdAt);
}

const FORGED_SPEND =
  'Nothing was paid by it, but a window of the policy counts it. Someone has written to Redis: the journal counts as well, so no cap is passed.';

function checkSpend(spend: Spend, found: AuditedRecord | undefined): Finding | undefined {
  const { attempt, id } = spend;
  const token = id.split(' ').at(-1) ?? '';
  if (found?.kind === 'removed' || (found?.kind === 'payout' && found.attempts.knows({ attempt, token })))
    return undefined;
  const message = `a policy's window counts attempt ${attempt}, which neither the journal nor its record has`;
  return findingOf(spend, 'spend', message, FORGED_SPEND);
}

function compareSpend(send: JournalEntry, spend: Spend): Finding | undefined {
  const { request } = send;
  const differing = (['paymentId', 'amount', 'addressTo'] as const).filter((field) => request[field] !== spend[field]);
  if (differing.length === 0) return undefined;
  const list = differing.map((field) => `${field} ${String(spend[field])} instead of ${String(request[field])}`);
  return findingOf(send, 'spend', `a policy's window counts ${list.join(', ')}`, FORGED_SPEND);
}

export interface AuditedJournal {
  readonly report: JournalReport;
  readonly items: () => AsyncGenerator<JournalItem>;
}

/** About 100 bytes a payout. */
type JournaledSends = ReadonlyMap<string, readonly number[]>;

function isJournaled(sends: JournaledSends, payoutId: string, attempt: number): boolean {
  return sends.get(payoutId)?.includes(attempt) ?? false;
}

async function readJournaledSends(journals: readonly AuditedJournal[]): Promise<JournaledSends> {
  const sends = new Map<string, readonly number[]>();
  for (const { items } of journals) {
    for await (const item of items()) {
      if ('payoutId' in item) sends.set(item.payoutId, [...(sends.get(item.payoutId) ?? []), item.attempt]);
    }
  }
  return sends;
}

/**
 * From then on (wall clock, ms) the journals have every send. An older one may be in a removed file or precede a
 * journal. 0 if an operator stated that nothing is missing.
 */
export function coveredFrom(journals: readonly AuditedJournal[]): number {
  return Math.max(...journals.map(({ report }) => beginOf(report)));
}

function beginOf({ bornAt, prunedUpTo, firstSendAt = Infinity }: JournalReport): number {
  return bornAt === undefined || prunedUpTo > 0 ? firstSendAt : bornAt;
}
