import { fromUnits } from '../../decimal.js';
import type { RuleUsage } from '../../ledger/policy-report.js';
import type { Cap, Policy } from '../policy/policy.js';
import { formatMicros } from '../policy/usd.js';
import type { Spending } from './spending.js';
import type { WaitingLines } from './waiting-lines.js';

/** The fullest buckets of a rule that are told of. */
const MOST_BUCKETS = 10;

/** What counts in the windows of a policy. @param now - monotonic, ms */
export function describeUsage(
  { rules }: Policy,
  spending: Pick<Spending, 'view' | 'bucketsOf'>,
  lines: Pick<WaitingLines, 'wanted'>,
  now: number,
): RuleUsage[] {
  return rules.flatMap(({ name, cap }) => {
    if (cap?.withinMs === undefined) return [];
    const { unit, limit, withinMs, per = null } = cap;
    const buckets = [...spending.bucketsOf(name, now)].sort(([, one], [, other]) => (one < other ? 1 : -1));
    const shown = (buckets.length === 0 && per === null ? [['', 0n] as const] : buckets).slice(0, MOST_BUCKETS);
    return [
      {
        ...{ rule: name, unit, limit: show(cap, limit), withinMs, per },
        buckets: shown.map(([bucket, spent]) => ({
          bucket,
          spent: show(cap, spent),
          wanted: show(cap, lines.wanted(name, bucket)),
          ratio: toRatio(spent, limit),
        })),
        unknown: spending.view(name, '').unknown ?? null,
      },
    ];
  });
}

function toRatio(spent: bigint, limit: bigint): number {
  if (limit === 0n) return spent === 0n ? 0 : 1;
  return Number((spent * 10_000n) / limit) / 10_000;
}

function show({ unit }: Cap, value: bigint): string {
  if (unit === 'usd') return formatMicros(value);
  return unit === 'count' ? value.toString() : fromUnits(value);
}
