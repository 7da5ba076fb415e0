import { z } from 'zod';
import { InvalidInputError } from '../../base/errors.js';
import { amountField, parseInput } from '../../base/fields.js';
import type { PayoutFilter } from '../../ledger/reads/payout-queries.js';
import { batchField } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';

export interface FilterFlags {
  readonly state?: PayoutState;
  readonly batch?: string;
  readonly address?: string;
  readonly reference?: string;
  readonly amount?: string;
  readonly since?: string;
  readonly until?: string;
}

const text = z.string().trim().min(1, 'must not be empty').optional();

const schema = z.object({
  '--batch': batchField.optional(),
  '--address': text,
  '--reference': text,
  '--amount': amountField.optional(),
});

/** @throws InvalidInputError naming every unusable flag */
export function readFilter({ state, batch, address, reference, amount, since, until }: FilterFlags): PayoutFilter {
  const given = { '--batch': batch, '--address': address, '--reference': reference, '--amount': amount };
  const parsed = parseInput(schema, given);
  const filter: PayoutFilter = {
    state,
    batch: parsed['--batch'],
    address: parsed['--address'],
    reference: parsed['--reference'],
    amount: parsed['--amount'],
    since: parseTime('--since', since),
    until: parseTime('--until', until),
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** Only state and batch have an index. */
export function isSearch(filter: PayoutFilter): boolean {
  const names = Object.keys(filter);
  return names.length > 1 || (filter.state === undefined && filter.batch === undefined);
}

/** A date means its first moment, UTC. */
export function parseTime(field: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const time = /^\d{4}-\d\d-\d\d(T.*(Z|[+-]\d\d:\d\d))?$/.test(given) ? Date.parse(given) : NaN;
  if (!Number.isNaN(time)) return time;
  const message = `must be a time such as 2030-01-31 or 2030-01-31T09:00:00Z (got "${given}")`;
  throw new InvalidInputError([{ field, message }]);
}
