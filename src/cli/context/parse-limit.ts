import { z } from 'zod';
import { parseInput } from '../../fields.js';

const schema = z.object({ '--limit': z.coerce.number().int('must be a whole number').min(1, 'must be at least 1') });

/** The number of `--limit`. @throws InvalidInputError */
export function parseLimit(text: string): number {
  return parseInput(schema, { '--limit': text })['--limit'];
}
