import type { Spend } from '../../ledger/control-record.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import { verifyReceipt } from '../../control/intents/receipt.js';
import { isSameTxhash } from '../../base/fields.js';
import { identify, type JournalEntry, type JournalItem } from '../../journal/journal-line.js';
import type { JournalReport } from '../../control/audit/verify-journal.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import { type AuditedRecord, readAudited, scanPayoutIds } from '../../ledger/read-audited.js';
import { readSpends } from '../../ledger/read-spends.js';
import type { PayoutState } from '../../ledger/states.js';
import { compareAccepted, compareSend, type SendComparison, toUnreadable } from './compare-send.js';
import { type Finding, identifyFinding } from './finding.js';
import { type ApprovalContext, verifyApprovals } from './verify-approvals.js';
import { keysOfThen, verifySend } from './verify-send.js';

export interface LedgerAuditOptions extends ApprovalContext {
  readonly journals: readonly AuditedJournal[];
  /** Undefined where the ledger is left out: then only the keys of the sends are looked at. */
  readonly connection: LedgerConnection | undefined;
  /** `PAYOUT_RETENTION_DAYS`; undefined where nothing is removed. */
  readonly retentionDays: number | undefined;
  /** Whether the archive of this host has a payout in this state. */
  readonly isArchived: (payoutId: string, state: string) => Promise<boolean>;
  /** Told how many sends and payouts were looked at. */
  readonly onProgress: (done: number) => void;
}

/** What the signatures, and the ledger, come to. */
export interface LedgerAudit {
  /** Sends of the journals that were compared with their payout's record. */
  readonly compared: number;
  /** Sends whose payout retention has removed. */
  readonly removed: number;
  /** Signed sends of which the signature and each approval that counted were verified. */
  readonly verified: number;
  /** Signed sends of which one of these could not be, and nothing was found. */
  readonly notVerifiable: number;
  /** Sends that no producer signed: of a worker without keys. */
  readonly unsigned: number;
  /** Sends whose payout Redis forgot, and which the application enqueued again, with another signature. */
  readonly signedAgain: number;
  /** Payouts of the ledger that were sent before the journals begin. */
  readonly before: number;
  /** Payouts whose state rests on an operator's word. */
  readonly onWord: number;
  /** Keys that are revoked now, with the number of sends and receipts that they signed. */
  readonly revokedKeys: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
}

/** Records read in one round trip: about a megabyte. */
const PAGE = 500;

/**
 * Compares the journals with the ledger, both ways. The journals are read before the ledger, which knows a send first; what seems
 * wrong because it happens meanwhile is looked at once more, and is right then.
 * @throws RedisUnavailableError
 */
export async function auditLedger(options: LedgerAuditOptions): Promise<LedgerAudit> {
  const first = await new Pass(options).run();
  if (first.findings.length === 0 || options.connection === undefined) return first;
  const again = await new Pass({ ...options, onProgress: () => undefined }).run(
    new Set(first.findings.map(({ payoutId }) => payoutId)),
  );
  const still = new Set(again.findings.map(identifyFinding));
  return { ...first, findings: first.findings.filter((finding) => still.has(identifyFinding(finding))) };
}

class Pass {
  readonly #options: LedgerAuditOptions;
  /** Redis may name a payout twice. */
  readonly #findings = new Map<string, Finding>();
  readonly #counts = { compared: 0, removed: 0, verified: 0, notVerifiable: 0, unsigned: 0, signedAgain: 0, before: 0 };
  readonly #onWord = new Set<string>();
  readonly #revokedKeys: Record<string, number> = {};
  /** By payout: the accepted of several attempts. */
  readonly #accepted = new Map<string, JournalEntry[]>();
  #done = 0;

  constructor(options: LedgerAuditOptions) {
    this.#options = options;
  }

  /** @param only - the payouts to look at @defaultValue all */
  async run(only?: ReadonlySet<string>): Promise<LedgerAudit> {
    const { connection, journals } = this.#options;
    const spends = connection === undefined ? new Map<string, Spend>() : await readBegunSpends(connection);
    const journaled = await readJournaledSends(journals);
    for (const { items } of journals) {
      for await (const page of pagesOf(items(), only)) await this.#judgeSends(page, spends, journaled);
    }
    for (const sends of this.#accepted.values()) this.#note(...compareAccepted(sends));
    if (connection !== undefined) {
      const context = { ...this.#options, journaled, coveredFrom: coveredFrom(journals) };
      const pages = only === undefined ? scanPayoutIds(connection) : [[...only]];
      for await (const payoutIds of pages) await this.#judgePayouts(connection, payoutIds, context);
      const unknown = [...spends.values()].filter(
        ({ payoutId, attempt }) => !isJournaled(journaled, payoutId, attempt),
      );
      await this.#judgeSpends(connection, unknown);
    }
    const { size: onWord } = this.#onWord;
    return { ...this.#counts, onWord, revokedKeys: this.#revokedKeys, findings: [...this.#findings.values()] };
  }

  async #judgeSends(
    sends: readonly JournalEntry[],
    spends: ReadonlyMap<string, Spend>,
    journaled: JournaledSends,
  ): Promise<void> {
    const { connection } = this.#options;
    const records =
      connection &&
      (await readAudited(
        connection,
        sends.map(({ payoutId }) => payoutId),
      ));
    for (const [index, send] of sends.entries()) {
      if (send.signed === undefined) this.#counts.unsigned += 1;
      this.#noteKey(send.signed?.key);
      const attempts = journaled.get(send.payoutId) ?? [];
      if (attempts.length > 1 && send.outcome?.kind === 'accepted') {
        this.#accepted.set(send.payoutId, [...(this.#accepted.get(send.payoutId) ?? []), send]);
      }
      const hasLater = attempts.some((attempt) => attempt > send.attempt);
      await this.#judgeSend(send, records?.[index], hasLater);
      const spend = spends.get(identify(send));
      const wrong = spend && compareSpend(send, spend);
      if (wrong !== undefined) this.#note(wrong);
    }
    this.#progress(sends.length);
  }

  async #judgeSend(send: JournalEntry, found: AuditedRecord | undefined, hasLater: boolean): Promise<void> {
    const comparison = found && (await this.#compare(send, found, hasLater));
    if (comparison?.isOnWord) this.#onWord.add(send.payoutId);
    const isAltered = comparison?.findings.some(({ kind }) => kind === 'altered') ?? false;
    const payout = found?.kind === 'payout' ? found.payout : undefined;
    if (found?.kind === 'removed') this.#counts.removed += 1;
    else if (found !== undefined) this.#counts.compared += 1;
    // Of what was altered, the fields say more than a signature that does not hold.
    const verification = verifySend(send, isAltered ? undefined : payout, this.#options);
    if (verification.isSignedAgain) this.#counts.signedAgain += 1;
    // Approvals are in the record alone.
    const isWhole = payout !== undefined && !verification.isSignedAgain;
    const approvals = isWhole ? verifyApprovals(send, payout, this.#options) : [];
    const findings = [...(comparison?.findings ?? []), ...verification.findings, ...approvals];
    this.#note(...findings);
    if (send.signed === undefined || findings.length > 0) return;
    const isVerified = verification.isVerified && (isWhole || (send.judged?.approvals ?? []).length === 0);
    this.#counts[isVerified ? 'verified' : 'notVerifiable'] += 1;
  }

  async #compare(send: JournalEntry, found: AuditedRecord, hasLater: boolean): Promise<SendComparison> {
    const { retentionDays, isArchived } = this.#options;
    const removal = { hasLater, retentionDays, isArchived: false, now: Date.now() };
    const comparison = compareSend(send, found, removal);
    // The archive is read where it matters.
    if (found.kind !== 'removed' || !comparison.findings.some(({ kind }) => kind === 'removed')) return comparison;
    return compareSend(send, found, { ...removal, isArchived: await isArchived(send.payoutId, found.state) });
  }

  #noteKey(key: string | undefined): void {
    if (key === undefined || this.#options.keyring?.find(key)?.revoked !== true) return;
    this.#revokedKeys[key] = (this.#revokedKeys[key] ?? 0) + 1;
  }

  async #judgePayouts(
    connection: LedgerConnection,
    payoutIds: readonly string[],
    context: Parameters<typeof judgeLedgerPayout>[1],
  ): Promise<void> {
    for (const [index, found] of (await readAudited(connection, payoutIds)).entries()) {
      if (found.kind === 'unreadable') this.#note(toUnreadable(payoutIds[index] ?? '', found.message));
      if (found.kind !== 'payout') continue;
      const { payout } = found;
      this.#noteKey(payout.receipt?.key);
      const judgement = judgeLedgerPayout(payout, context);
      if (judgement.kind === 'finding') this.#note(judgement.finding);
      else if (judgement.kind === 'before') this.#counts.before += 1;
      else if (judgement.kind === 'on_word') this.#onWord.add(payout.payoutId);
    }
    this.#progress(payoutIds.length);
  }

  async #judgeSpends(connection: LedgerConnection, spends: readonly Spend[]): Promise<void> {
    for (let start = 0; start < spends.length; start += PAGE) {
      const page = spends.slice(start, start + PAGE);
      const records = await readAudited(
        connection,
        page.map(({ payoutId }) => payoutId),
      );
      this.#note(...page.flatMap((spend, index) => judgeSpend(spend, records[index] ?? MISSING) ?? []));
    }
  }

  #note(...findings: readonly Finding[]): void {
    for (const finding of findings) this.#findings.set(identifyFinding(finding), finding);
  }

  #progress(count: number): void {
    this.#options.onProgress((this.#done += count));
  }
}

const MISSING: AuditedRecord = { kind: 'missing' };

/** What has begun, and is not known to be unpaid, by the identity of its attempt. */
async function readBegunSpends(connection: LedgerConnection): Promise<Map<string, Spend>> {
  const spends = new Map<string, Spend>();
  for (const event of await readSpends(connection)) {
    if (event.kind === 'begun') spends.set(event.spend.id, event.spend);
    else if (event.kind === 'unpaid') spends.delete(event.id);
  }
  return spends;
}

async function* pagesOf(
  items: ReturnType<AuditedJournal['items']>,
  only: ReadonlySet<string> | undefined,
): AsyncGenerator<JournalEntry[]> {
  let page: JournalEntry[] = [];
  for await (const item of items) {
    if (!('payoutId' in item) || only?.has(item.payoutId) === false) continue;
    page.push(item);
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

interface UnjournaledContext {
  readonly platformId: number;
  readonly keyring: BoundKeyring | undefined;
  readonly journaled: JournaledSends;
  /** From when on the journals have every send, wall clock, ms. */
  readonly coveredFrom: number;
}

/** What of a payout of the ledger is not in the journals. */
type LedgerJudgement =
  | { readonly kind: 'journaled' }
  /** It was sent before the journals begin, as the ledger says. */
  | { readonly kind: 'before' }
  /** Only an operator's word says that it was sent. */
  | { readonly kind: 'on_word' }
  | { readonly kind: 'finding'; readonly finding: Finding };

/** In these, the gateway has answered: a worker had journaled the send. */
const ANSWERED: ReadonlySet<PayoutState> = new Set(['in_progress', 'completed', 'failed', 'rejected']);

const INVENTED =
  'Ask the gateway for it. Where another host sent it, name the folder of its journal with --journal; else somebody has written it into Redis.';

/** Finds what the ledger says was sent, and no journal has. */
function judgeLedgerPayout(payout: Payout, context: UnjournaledContext): LedgerJudgement {
  const { payoutId, state, attempt } = payout;
  const receipt = judgeReceipt(payout, context);
  if (receipt !== undefined) return { kind: 'finding', finding: receipt };
  if (!ANSWERED.has(state) || isJournaled(context.journaled, payoutId, attempt)) return { kind: 'journaled' };
  if (isSameTxhash(payout.vouchedTxhash, payout.txhash)) return { kind: 'on_word' };
  if (begunAt(payout) < context.coveredFrom) return { kind: 'before' };
  const transaction = payout.txhash === undefined ? '' : `, txhash ${payout.txhash}`;
  const message = `the ledger says ${state}${transaction}, attempt ${attempt}; no journal has that send`;
  return { kind: 'finding', finding: { payoutId, attempt, kind: 'not_in_journal', message, action: INVENTED } };
}

/** A receipt that is there has to hold; one that is missing may be of a worker without a key. */
function judgeReceipt(payout: Payout, { platformId, keyring }: UnjournaledContext): Finding | undefined {
  const isSigned = payout.state === 'completed' || payout.state === 'failed';
  if (!isSigned || payout.receipt === undefined || keyring === undefined) return undefined;
  const verdict = verifyReceipt(platformId, payout, keysOfThen(keyring));
  if (verdict.kind === 'verified') return undefined;
  const { payoutId, attempt } = payout;
  const action = 'Book the payment only once the gateway has confirmed it.';
  return { payoutId, attempt, kind: 'receipt', message: `its receipt does not count: ${verdict.message}`, action };
}

/** NaN where the history does not say: no time is before that. */
function begunAt({ history, createdAt }: Payout): number {
  return Date.parse(history.findLast(({ to }) => to === 'sending')?.at ?? createdAt);
}

const FORGED_SPEND =
  'Nothing was paid by it, but a window of the policy counts it. Somebody has written to Redis: the journal counts as well, so no cap is passed.';

/** A spend of the ledger that neither a journal nor the payout's record has. */
function judgeSpend({ payoutId, attempt, id }: Spend, found: AuditedRecord): Finding | undefined {
  const token = id.split(' ').at(-1) ?? '';
  if (found.kind === 'removed' || (found.kind === 'payout' && found.attempts.knows({ attempt, token })))
    return undefined;
  const message = `a policy's window counts attempt ${attempt}, which neither the journal nor its record has`;
  return { payoutId, attempt, kind: 'spend', message, action: FORGED_SPEND };
}

/** A spend that counts another payment than the one that was sent. */
function compareSpend({ payoutId, attempt, request }: JournalEntry, spend: Spend): Finding | undefined {
  const differing = (['paymentId', 'amount', 'addressTo'] as const).filter((field) => request[field] !== spend[field]);
  if (differing.length === 0) return undefined;
  const message = `a policy's window counts ${differing.map((field) => `${field} ${String(spend[field])} instead of ${String(request[field])}`).join(', ')}`;
  return { payoutId, attempt, kind: 'spend', message, action: FORGED_SPEND };
}

/** A journal of the account: that of this host, or of another that was named. */
export interface AuditedJournal {
  readonly report: JournalReport;
  /** Its sends and what stands between them, from disk. */
  readonly items: () => AsyncGenerator<JournalItem>;
}

/** Which attempts of each payout the journals have: about 100 bytes each. */
type JournaledSends = ReadonlyMap<string, readonly number[]>;

function isJournaled(sends: JournaledSends, payoutId: string, attempt: number): boolean {
  return sends.get(payoutId)?.includes(attempt) ?? false;
}

/** Reads every journal for the attempts that it has. */
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
 * From when on the journals have every send, wall clock, ms: what is older may stand in a file that was removed, or was sent
 * before one of them began. 0 where an operator stated that nothing is missing.
 */
export function coveredFrom(journals: readonly AuditedJournal[]): number {
  return Math.max(...journals.map(({ report }) => beginOf(report)));
}

function beginOf({ bornAt, prunedUpTo, firstSendAt = Infinity }: JournalReport): number {
  return bornAt === undefined || prunedUpTo > 0 ? firstSendAt : bornAt;
}
