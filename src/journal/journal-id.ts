import { createHash, randomBytes } from 'node:crypto';
import { listFiles, readLines } from './journal-files.js';

const ID_LENGTH = 12;

/** 48 random bits. */
export function randomId(): string {
  return randomBytes(ID_LENGTH / 2).toString('hex');
}

/** The id for a journal of format 1, which stored none. Every process derives the same id from the first line. */
export async function formerId(path: string): Promise<string> {
  const [oldest] = await listFiles(path);
  if (oldest === undefined) return randomId();
  for await (const { text } of readLines(oldest, 0)) {
    return createHash('sha256').update(text).digest('hex').slice(0, ID_LENGTH);
  }
  return randomId();
}
