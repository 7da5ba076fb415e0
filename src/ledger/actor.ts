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

/** What this program prints where the operator's own reason belongs. */
const reasonField = lineField.refine((text) => !/^\W*why\W*$/i.test(text), {
  error: 'must be your own: WHY only stands for it in the commands that are shown',
});

const actorSchema = z.object({ by: lineField, reason: reasonField });

/** @throws InvalidInputError when a text is empty, too long or more than one line */
export function parseActor({ by, reason }: Actor): Actor {
  return parseInput(actorSchema, { by, reason });
}
