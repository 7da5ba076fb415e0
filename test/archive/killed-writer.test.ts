import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { ArchiveFolder } from '../../src/archive/archive-files.js';
import { findArchived } from '../../src/archive/find-archived.js';
import { readArchive } from '../../src/archive/read-archive.js';
import { names } from '../ledger/support/use-account.js';

const PROGRAM = fileURLToPath(new URL('support/keep-payouts.mjs', import.meta.url));

let folder: ArchiveFolder;
beforeEach(async () => {
  folder = { dir: await mkdtemp(join(tmpdir(), 'killed-writer-')), platformId: 7 };
});
afterEach(async () => rm(folder.dir, { recursive: true, force: true }));

/**
 * Runs a writer, which is killed, or ends by itself at a file of `limit` KiB, as if the disk were full then.
 * @returns how many payouts it said to be on disk
 */
async function write(prefix: string, limit = 'unlimited'): Promise<number> {
  const program = [process.execPath, PROGRAM, folder.dir, String(folder.platformId), prefix];
  const child = spawn('bash', ['-c', `ulimit -f ${limit}; exec "$0" "$@"`, ...program]);
  let said = '';
  const ended = new Promise((resolve) => child.once('close', resolve));
  const begun = new Promise((resolve) => child.stdout.once('data', resolve));
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await Promise.race([begun, ended]);
  if (limit === 'unlimited') await delay(Math.random() * 150).then(() => child.kill('SIGKILL'));
  await ended;
  // A last line without its end was cut off.
  return Number(said.split('\n').at(-2) ?? 0);
}

it('has every payout that a killed writer said to be on disk, each once', async () => {
  const kept = new Map([['a', await write('a', '8000')]]);
  for (const prefix of ['b', 'c', 'd']) kept.set(prefix, await write(prefix));
  const day = ['2030-01-07.2.index', '2030-01-07.2.jsonl.gz', '2030-01-07.index', '2030-01-07.jsonl.gz'];
  expect(await readdir(`${folder.dir}/7`)).toEqual(day);
  expect(Math.min(...kept.values())).toBeGreaterThan(0);
  const read: string[] = [];
  for await (const payouts of readArchive(folder, { onDamage: () => undefined })) {
    read.push(...payouts.map(({ payoutId }) => payoutId));
  }
  const found = new Set(read);
  expect(found.size).toBe(read.length);
  for (const [prefix, count] of kept) {
    expect(names(count, `${prefix}-`).filter((id) => !found.has(id))).toEqual([]);
    const payoutId = `${prefix}-${count - 1}`;
    expect(await findArchived(folder, { payoutId }, { onDamage: () => undefined })).toMatchObject({ payoutId });
  }
});
