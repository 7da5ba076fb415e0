import { z } from 'zod';
import { parseInput } from '../fields.js';
import { lineField } from './payout.js';

/** Who decided, and why: recorded with every change that an operator makes. */
export interface Actor {
  /** Who: a name, one line. */
  readonly by: string;
  /** Why: one line, such as the number of a support ticket. */
  readonly reason: string;
}

const actorSchema = z.object({ by: lineField, reason: lineField });

/** @throws InvalidInputError when a text is empty, too long or more than one line */
export function parseActor({ by, reason }: Actor): Actor {
  return parseInput(actorSchema, { by, reason });
}
