import { stringify } from 'csv-stringify/sync';
import type { Keyring } from '../../control/keys/keyring.js';
import { formatMicros } from '../../control/policy/values.js';
import { quoteFormula } from '../../ledger/payout-csv.js';
import { formatCount, formatTimeUtc, toIsoTime } from '../../base/format.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import type { JournalReport } from '../../control/audit/verify-journal.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import type { Payout } from '../../ledger/payout.js';
import { toPlainText } from '../../base/plain-text.js';
import type { Finding } from '../audit/finding.js';
import type { AuditResult } from '../audit/run-audit.js';
import { approvalsOf } from '../audit/verify-send.js';
import { formatResponse } from './format-response.js';

interface AuditRowFacts {
  readonly platformId: number;
  readonly payout: Payout | undefined;
  readonly currencies: readonly Currency[];
  readonly keyring: Keyring | undefined;
}

/** A journaled send, flat. Undefined values do not apply. Times are ISO 8601, UTC. */
const COLUMNS = [
  'sent_at',
  'payout_id',
  'attempt',
  'payment_id',
  'amount',
  'address_to',
  'symbol',
  // Undefined if the sender ended before journaling one.
  'outcome',
  'gateway_id',
  'txhash',
  // The gateway's or sender's, for an outcome without a payment.
  'message',
  'signer',
  'intent',
  'issued_at',
  'expires_at',
  'act',
  // Value at that moment, if the worker knew it.
  'usd',
  'policy',
  // Hashes of the counted approvals, separated by spaces.
  'approvals',
  'currency',
  // The gateway's, for the paid attempt.
  'fee',
  'signer_person',
  // Separated by "; ". The key's name if the keyring lacks the key.
  'approved_by',
  'requested_by',
  // When the sender journaled the outcome.
  'answered_at',
  // In the ledger, if this is the payout's last attempt.
  'state',
  'state_at',
  'reference',
] as const;

export type AuditRow = { readonly [Column in (typeof COLUMNS)[number]]: string | number | undefined };

export const AUDIT_CSV_HEADER = stringify([COLUMNS]);

/** @param facts - from Redis and the keyring, not verified */
export function toAuditRow(send: JournalEntry, facts: AuditRowFacts): AuditRow {
  return { ...toJournalColumns(send), ...toLedgerColumns(send, facts) };
}

function toLedgerColumns(send: JournalEntry, facts: AuditRowFacts) {
  const { attempt, request, signed } = send;
  const { payout, currencies, keyring } = facts;
  const last = payout?.attempt === attempt ? payout : undefined;
  return {
    currency: currencies.find(({ paymentId }) => paymentId === request.paymentId)?.name,
    fee: last?.fee,
    signer_person: signed && keyring?.find(signed.key)?.person,
    approved_by: namePersons(send, facts),
    requested_by: signed?.proof.requestedBy ?? payout?.requestedBy,
    state: last?.state,
    state_at: last?.updatedAt,
    reference: signed?.proof.reference ?? payout?.reference,
  };
}

function namePersons({ judged }: JournalEntry, { platformId, payout, keyring }: AuditRowFacts): string | undefined {
  if (judged?.approvals === undefined || payout === undefined) return undefined;
  const byHash = new Map(approvalsOf(payout, platformId));
  const names = judged.approvals.flatMap((hash) => {
    const by = byHash.get(hash)?.by;
    return by === undefined ? [] : [keyring?.find(by)?.person ?? by];
  });
  return names.length === 0 ? undefined : [...new Set(names)].join('; ');
}

function toJournalColumns(send: JournalEntry) {
  const { at, payoutId, attempt, request, outcome, outcomeAt, signed, judged } = send;
  return {
    sent_at: toIso(at),
    payout_id: payoutId,
    attempt,
    payment_id: request.paymentId,
    amount: request.amount,
    address_to: request.addressTo,
    symbol: request.symbol,
    outcome: outcome?.kind,
    gateway_id: outcome?.kind === 'accepted' ? outcome.gatewayId : undefined,
    txhash: outcome?.kind === 'accepted' ? outcome.txhash : undefined,
    message: describeOutcome(outcome),
    signer: signed?.key,
    intent: signed?.intent,
    issued_at: signed && toIso(signed.issuedAt),
    expires_at: signed && toIso(signed.expiresAt),
    act: signed?.act,
    usd: judged?.usd === undefined ? undefined : formatMicros(BigInt(judged.usd)),
    policy: judged?.policy,
    approvals: judged?.approvals?.join(' '),
    answered_at: outcomeAt === undefined ? undefined : toIso(outcomeAt),
  };
}

/** Safe for spreadsheets. */
export function formatAuditRow(row: AuditRow): string {
  return stringify([
    COLUMNS.map((name) => {
      const value = row[name];
      return typeof value === 'string' ? quoteFormula(value) : value;
    }),
  ]);
}

function describeOutcome(outcome: JournalEntry['outcome']): string | undefined {
  if (outcome === undefined || outcome.kind === 'accepted') return undefined;
  return outcome.kind === 'rejected' ? outcome.message : outcome.reason;
}

function toIso(at: number): string {
  return new Date(at).toISOString();
}

export function toAuditJson({ reports, audit, notCompared, otherJournals, findings }: AuditResult): object {
  const [own, ...others] = reports.map(toReportJson);
  const { compared, removed, before, onWord, verified, notVerifiable, unsigned, signedAgain, revokedKeys } =
    audit ?? {};
  return {
    ...own,
    others,
    ledger:
      notCompared === undefined
        ? { compared: true, sends: compared, removed, before, onWord, otherJournals }
        : { compared: false, reason: notCompared },
    verified,
    notVerifiable,
    unsigned,
    signedAgain,
    revokedKeys,
    findings,
  };
}

function toReportJson(report: JournalReport): object {
  const { journalId, files, lines, sends, bornAt, prunedUpTo, firstSendAt, head, found, faults } = report;
  return { journalId, files, lines, sends, bornAt, prunedUpTo, firstSendAt, head, found, faults };
}

/** @param wanted - requested head */
export function describeAudit(result: AuditResult, wanted: string | undefined, hasKeyring: boolean): string {
  const { reports, findings } = result;
  return [
    ...reports.map((report, index) => describeReport(report, index === 0 ? wanted : undefined)),
    formatResponse({
      signatures: describeSignatures(result, hasKeyring),
      ledger: describeLedger(result),
      findings: findings.length === 0 ? 'none' : String(findings.length),
    }),
    ...findings.map(describeFinding),
  ].join('');
}

function describeReport(report: JournalReport, wanted: string | undefined): string {
  const { journalId, files, lines, sends, bornAt, head, found, faults } = report;
  const facts = {
    journal: journalId,
    files: String(files),
    lines: String(lines),
    sends: String(sends),
    begins: describeBirth(bornAt),
    head: head ?? 'none',
    ...(wanted === undefined ? {} : { 'head given': found ? `${found.file}:${found.line}` : 'not in this journal' }),
    chain: faults.length === 0 ? 'whole' : formatCount(faults.length, 'fault'),
  };
  return formatResponse(facts) + faults.map(({ file, line, message }) => `${file}:${line}: ${message}\n`).join('');
}

function describeBirth(bornAt: number | undefined): string {
  if (bornAt === undefined) return 'no header';
  return bornAt === 0 ? 'complete, as an operator stated' : formatTimeUtc(toIsoTime(bornAt));
}

const GONE = 'because the record is gone that had the signature or the approvals';

function describeSignatures({ audit, reports }: AuditResult, hasKeyring: boolean): string {
  if (audit === undefined) return 'not verified';
  const signed = reports.reduce((sum, { sends }) => sum + sends, 0) - audit.unsigned;
  const revoked = Object.entries(audit.revokedKeys).map(
    ([key, count]) => `${count} by the key "${key}", which is revoked now`,
  );
  const { verified, notVerifiable } = audit;
  const what = hasKeyring ? `${verified} verified` : 'not verified: PAYOUT_KEYS_FILE names no keyring';
  return [
    signed === 0 ? 'no signed sends' : `${formatCount(signed, 'signed send')}: ${what}`,
    ...(hasKeyring && notVerifiable > 0 ? [`${notVerifiable} not verifiable, ${GONE}`] : []),
    ...(audit.unsigned > 0 && signed > 0 ? [`${audit.unsigned} unsigned`] : []),
    ...(audit.signedAgain === 0 ? [] : [`${audit.signedAgain} signed again since, after Redis forgot them`]),
    ...revoked,
  ].join('; ');
}

function describeLedger({ audit, notCompared, otherJournals }: AuditResult): string {
  if (notCompared !== undefined || audit === undefined) return `NOT COMPARED: ${notCompared ?? ''}`;
  const { compared, removed, before, onWord } = audit;
  return [
    `${formatCount(compared, 'send')} compared`,
    ...(removed === 0 ? [] : [`${removed} removed by retention`]),
    ...(before === 0 ? [] : [`${formatCount(before, 'payout')} of before the journal`]),
    ...(onWord === 0 ? [] : [`${formatCount(onWord, 'payout')} on an operator's word`]),
    ...(otherJournals.length === 0 ? [] : [`also names journal ${otherJournals.join(', ')}, which --journal did not`]),
  ].join('; ');
}

function describeFinding({ payoutId, attempt, message, action }: Finding): string {
  const what = [payoutId === '' ? 'journal' : payoutId, ...(attempt === undefined ? [] : [`attempt ${attempt}`])];
  return `${toPlainText(`${what.join(', ')}: ${message}. ${action}`)}\n`;
}
