import { formatCount, formatTime } from '../../format.js';
import type { JournalReport } from '../../control/audit/verify-journal.js';
import type { Finding } from '../audit/finding.js';
import type { AuditResult } from '../audit/run-audit.js';
import { formatResponse } from './format-response.js';
import { toPlainText } from '../../plain-text.js';

/** What `payouts audit verify --json` prints: the report of this host's journal, and what the rest came to. */
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
  const { journalId, files, lines, unchained, sends, bornAt, prunedUpTo, firstSendAt, head, found, faults } = report;
  return { journalId, files, lines, unchained, sends, bornAt, prunedUpTo, firstSendAt, head, found, faults };
}

/**
 * The result for operators.
 * @param wanted - the head that was asked for
 * @param hasKeyring - whether signatures were verified
 */
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
  const { journalId, files, lines, unchained, sends, bornAt, head, found, faults } = report;
  const facts = {
    journal: journalId,
    files: String(files),
    lines: unchained === 0 ? String(lines) : `${lines}, ${unchained} of a format without hashes`,
    sends: String(sends),
    begins: describeBirth(bornAt),
    head: head ?? 'none',
    ...(wanted === undefined ? {} : { 'head given': found ? `${found.file}:${found.line}` : 'not in this journal' }),
    chain: faults.length === 0 ? 'whole' : formatCount(faults.length, 'fault'),
  };
  return formatResponse(facts) + faults.map(({ file, line, message }) => `${file}:${line}: ${message}\n`).join('');
}

function describeBirth(bornAt: number | undefined): string {
  if (bornAt === undefined) return 'format 1 or 2: `payouts journal upgrade`';
  return bornAt === 0 ? 'complete, as an operator stated' : formatTime(new Date(bornAt).toISOString());
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
