import { z } from 'zod';
import { parseInput } from '../base/fields.js';
import { toIsoTime } from '../base/format.js';
import { lineField, type Payout, type PayoutComment, toLine } from './payout.js';

/** A comment for a payout: who writes it, and one line of at most 200 characters. */
export type NewComment = Pick<PayoutComment, 'by' | 'text'>;

const commentSchema = z.object({ by: lineField, text: lineField });

/** @throws InvalidInputError */
export function parseNewComment(comment: NewComment): NewComment {
  const { by, text } = parseInput(z.looseObject({}), comment, 'comment');
  return parseInput(commentSchema, { by, text });
}

/** Of one payout, and in its record: the fields `c0`, `c1`, … of comment-payout.lua. */
export const MAX_COMMENTS = 50;

/** The time in base 36, who wrote it, and the text. */
const STORED = /^([0-9a-z]{1,9})\t([^\t]*)\t(.*)$/s;

/** The oldest first. What someone altered is left out or shown as one line: no comment may hide a payout. */
export function parseComments(record: Readonly<Record<string, string>>): readonly PayoutComment[] {
  const comments: PayoutComment[] = [];
  for (let index = 0; index < MAX_COMMENTS; index += 1) {
    const stored = record[`c${index}`];
    if (stored === undefined) break;
    const [, time, by = '', text = ''] = STORED.exec(stored) ?? [];
    if (time !== undefined)
      comments.push({ at: toIsoTime(Number.parseInt(time, 36)), by: toLine(by), text: toLine(text) });
  }
  return comments;
}

/** For lists: `ann: I am on it`. */
export function lastComment({ comments }: Pick<Payout, 'comments'>): string | undefined {
  const last = comments?.at(-1);
  return last && `${last.by}: ${last.text}`;
}
