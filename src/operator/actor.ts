import { z } from 'zod';
import { parseInput } from '../fields.js';
import { lineField } from '../ledger/payout.js';

/** Who decided, and why: recorded with every change that an operator makes. */
export interface Actor {
  readonly by: string;
  readonly reason: string;
}

const actorSchema = z.object({ by: lineField, reason: lineField });

/** @throws InvalidInputError when a text is empty, too long or more than one line */
export function parseActor({ by, reason }: Actor): Actor {
  return parseInput(actorSchema, { by, reason });
}
