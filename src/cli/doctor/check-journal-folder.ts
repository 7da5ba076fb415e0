import { randomUUID } from 'node:crypto';
import { open, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { within, type Clock } from '../../clock.js';
import { GUARD_MS } from '../../account-settings.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

/** An empty folder has no memory of what was sent. */
const TO_MOVE = 'To move the journal: stop the worker, copy the whole folder, then set SEND_JOURNAL_DIR to the copy.';

const WRITES = 5;
const SLOW_MS = 50;
const ANSWERS_WITHIN_MS = 10_000;

/**
 * Whether the worker can write its journal, and how long a write takes. Tested with a temporary file: the journal itself
 * belongs to the running worker.
 */
export async function checkJournalFolder(journalDir: string, clock: Clock): Promise<CheckResult> {
  const name = 'journal folder';
  const wanted = resolve(journalDir);
  try {
    const timed = await within(ANSWERS_WITHIN_MS, timeFolder(wanted, clock), clock);
    if (timed === undefined) {
      const detail = `${wanted} has not answered for ${ANSWERS_WITHIN_MS / 1_000} s: its disk hangs`;
      return problem(name, detail, 'Check the disk or its mount: nothing is sent until it answers.');
    }
    const { dir, syncMs } = timed;
    const place = dir === wanted ? wanted : `${wanted} (created by the worker)`;
    const detail = `${place} is writable, synced to disk in ${syncMs.toFixed(1)} ms`;
    if (syncMs > GUARD_MS / 2) {
      return problem(name, detail, `A send must begin within ${GUARD_MS} ms: take load off this disk. ${TO_MOVE}`);
    }
    return syncMs > SLOW_MS
      ? warning(name, detail, `Every send waits that long: take load off this disk. ${TO_MOVE}`)
      : ok(name, detail);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const cause = code === 'ENOSPC' || code === 'EDQUOT' ? 'Free space on this disk.' : 'Let the worker write there.';
    return problem(name, `${wanted} cannot be written: ${message}`, `${cause} ${TO_MOVE}`);
  }
}

async function timeFolder(wanted: string, clock: Clock): Promise<{ dir: string; syncMs: number }> {
  const dir = await findExisting(wanted);
  return { dir, syncMs: await timeSync(dir, clock) };
}

/** The folder itself, or its nearest existing parent. Not created here: it would belong to the wrong user. */
export async function findExisting(dir: string): Promise<string> {
  try {
    await stat(dir);
    return dir;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(dir) === dir) throw error;
    return findExisting(dirname(dir));
  }
}

/** How long a write into the folder takes to be on disk, in ms. @throws Error when it cannot be written */
export async function timeSync(dir: string, clock: Clock): Promise<number> {
  const path = join(dir, `.payouts-doctor-${randomUUID()}`);
  const file = await open(path, 'wx');
  try {
    const times: number[] = [];
    for (let write = 0; write < WRITES; write += 1) {
      const startedAt = clock.now();
      await file.write('payouts doctor\n');
      await file.datasync();
      times.push(clock.now() - startedAt);
    }
    return times.sort((one, other) => one - other)[Math.floor(WRITES / 2)] ?? 0;
  } finally {
    await file.close();
    await rm(path);
  }
}
