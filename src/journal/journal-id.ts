import { createHash, randomBytes } from 'node:crypto';
import { listFiles, readLines } from './journal-files.js';

const ID_LENGTH = 12;

/** An id for a new journal: 48 random bits in hexadecimal. */
export function randomId(): string {
  return randomBytes(ID_LENGTH / 2).toString('hex');
}

/** The id of a journal of format 1, which stored none: every process derives the same one from its first line. */
export async function formerId(path: string): Promise<string> {
  const [oldest] = await listFiles(path);
  if (oldest === undefined) return randomId();
  for await (const { text } of readLines(oldest, 0)) {
    return createHash('sha256').update(text).digest('hex').slice(0, ID_LENGTH);
  }
  return randomId();
}
