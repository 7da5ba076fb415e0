import { formatSpan } from '../../control/policy/format-span.js';
import { formatCount, formatDuration } from '../../format.js';
import { describeRates, type BucketUsage, type PolicyReport, type RuleUsage } from '../../ledger/policy-report.js';
import type { CliContext } from '../context/cli-context.js';
import { formatTable } from '../output/format-table.js';

const BAR_WIDTH = 20;

/** An older report is of a worker that stopped. */
const CURRENT_FOR_MS = 60_000;

/** How much of each window is used. @param now - wall clock, ms */
export function formatUsage(report: PolicyReport, now: number, colours: CliContext['colours']): string {
  const { hash, at, rules, held } = report;
  const rates = describeRates(report, now);
  const ageMs = Math.max(0, now - at);
  const age = `${formatDuration(ageMs)} ago`;
  const facts = [
    ['policy', hash],
    ['told', ageMs > CURRENT_FOR_MS ? colours.red(`${age}: no worker with a policy sends now`) : age],
    ...(rates === undefined ? [] : [['rates', rates]]),
    ...held.map(({ rule, reason, count }) => ['held', `${formatCount(count, 'payout')} by ${rule} (${reason})`]),
  ];
  const rows = rules.flatMap((rule) => rule.buckets.map((bucket) => toRow(rule, bucket)));
  return [
    formatTable(facts.map(([name = '', value = '']) => ['', colours.dim(name), value])),
    rows.length === 0 ? '\nNo rule has a window.\n' : `\n${formatTable(rows)}`,
    ...rules.flatMap(({ rule, unknown }) => (unknown === null ? [] : [`${rule}: ${unknown}\n`])),
  ].join('');
}

function toRow({ rule, unit, limit, withinMs }: RuleUsage, { bucket, spent, wanted, ratio }: BucketUsage): string[] {
  const of = unit === 'usd' ? `${limit} USD` : unit === 'count' ? `${limit} sends` : limit;
  const waits = wanted === '0' || wanted === '0.00' ? '' : `${wanted} wanted`;
  return [
    '',
    rule,
    bucket,
    toBar(ratio),
    `${Math.round(ratio * 100)} %`,
    `${spent} of ${of} in ${formatSpan(withinMs)}`,
    waits,
  ];
}

function toBar(ratio: number): string {
  const full = Math.min(BAR_WIDTH, Math.round(ratio * BAR_WIDTH));
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}`;
}

/** The same for programs. Times are ISO 8601, UTC. */
export function toUsageJson({ hash, at, rules, held, ratesAt }: PolicyReport): object {
  const toTime = (ms: number): string => new Date(ms).toISOString();
  return { hash, at: toTime(at), rules, held, ratesAt: ratesAt === null ? null : toTime(ratesAt) };
}
