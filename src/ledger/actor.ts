import { z } from 'zod';
import { parseInput } from '../fields.js';
import { lineField } from './payout.js';

/** Who decided, and why: recorded with every change by an operator. */
export interface Actor {
  /** A name, one line. */
  readonly by: string;
  /** One line, such as the number of a support ticket. */
  readonly reason: string;
}

/** Our own placeholder. */
const reasonField = lineField.refine((text) => !/^\W*why\W*$/i.test(text), {
  error: 'must be your own: WHY only stands for it in the commands that are shown',
});

const actorSchema = z.object({ by: lineField, reason: reasonField });

/** @throws InvalidInputError */
export function parseActor({ by, reason }: Actor): Actor {
  return parseInput(actorSchema, { by, reason });
}
