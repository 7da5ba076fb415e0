import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSendJournal } from '../../src/worker/file-send-journal.js';
import type { JournaledSend } from '../../src/worker/send-journal.js';

let dir: string;
let opened: FileSendJournal[];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'journal-'));
  opened = [];
});

afterEach(async () => {
  for (const journal of opened) await journal.close();
  await rm(dir, { recursive: true });
});

async function open(): Promise<FileSendJournal> {
  const journal = await FileSendJournal.open({ dir, platformId: 1 });
  opened.push(journal);
  return journal;
}

function aSend(payoutId: string, sends: number): JournaledSend {
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  return { payoutId, attempt: 1, epoch: 3, sends, at: 1_900_000_000_000, request };
}

describe('FileSendJournal', () => {
  it('tells when another process has added to it, and no longer once that was read', async () => {
    const one = await open();
    await one.bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    await one.append(aSend('p', 1));
    expect(await one.changedByOthers()).toBe(false);

    const other = await open();
    expect(other.knows('p', 1)).toBe(true);
    expect(await other.changedByOthers()).toBe(false);
    await other.append(aSend('q', 2));
    expect(await other.changedByOthers()).toBe(false);
    expect(await one.changedByOthers()).toBe(true);
    expect(one.knows('q', 1)).toBe(false);

    await one.reload();
    expect(await one.changedByOthers()).toBe(false);
    expect(one.knows('q', 1)).toBe(true);
    expect(one.ledger).toEqual({ ledgerId: 'ledger', epoch: 3, sends: 2 });
  });

  it('tells it also of a line that was written just before its own', async () => {
    const one = await open();
    await one.bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    const other = await open();
    await other.append(aSend('p', 1));
    await one.append(aSend('p', 1));
    expect(await one.changedByOthers()).toBe(true);
  });

  it('reads a torn last line as none, ends it, and counts that as its own doing', async () => {
    await (await open()).bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    const path = join(dir, '1.journal');
    await appendFile(path, '{"payoutId":"p');
    const journal = await open();
    expect(await journal.changedByOthers()).toBe(false);
    await journal.append(aSend('p', 1));
    expect(await journal.changedByOthers()).toBe(false);
    await journal.reload();
    expect(journal.lastSends(9)).toEqual([aSend('p', 1)]);
  });

  it('refuses a line in the middle that makes no sense', async () => {
    await (await open()).bind({ ledgerId: 'ledger', epoch: 2, sends: 0 });
    const path = join(dir, '1.journal');
    await writeFile(path, `${await readFile(path, 'utf8')}nonsense\n`);
    await expect(open()).rejects.toThrow(/cannot be read at .*1\.journal:2/);
  });
});
