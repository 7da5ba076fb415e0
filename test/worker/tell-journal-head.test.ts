import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import type { JournalHead } from '../../src/ledger/sender-ledger.js';
import { silentLogger, type Logger } from '../../src/base/logger.js';
import { JournalHeadTeller } from '../../src/worker/account-sending.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { aSend, LEDGER, makeJournalFolder, type JournalFolder } from '../journal/support/journal-folder.js';

const MINUTE_MS = 60_000;

let clock: ManualClock;
let folder: JournalFolder;
let journal: FileSendJournal;
let told: JournalHead[];
let logged: object[];
let fails: boolean;
let teller: JournalHeadTeller;

beforeEach(async () => {
  clock = new ManualClock();
  folder = await makeJournalFolder();
  journal = await folder.open();
  await journal.bind(LEDGER);
  [told, logged, fails] = [[], [], false];
  const logger: Logger = { ...silentLogger, info: (fields) => void logged.push(fields) };
  const tell = async (head: JournalHead): Promise<void> => {
    if (fails) throw new Error('Redis unavailable');
    told.push(head);
    return Promise.resolve();
  };
  teller = new JournalHeadTeller({ journal, tell, clock, logger });
});
afterEach(async () => folder.close());

const headOnDisk = async (): Promise<string | undefined> => (await verifyJournal(folder.dir, 1))?.head;

it('tells the newest line at once and every ten minutes, in the log too, and stops with the lease', async () => {
  const end = new AbortController();
  const keeping = teller.keep(end.signal);
  await clock.advance(0);
  const first = { journalId: journal.journalId, hash: await headOnDisk(), sends: 0 };
  expect(told).toEqual([first]);
  expect(logged).toEqual([{ head: first.hash, journalId: first.journalId, sends: 0 }]);
  await journal.append(aSend('p', 1));
  await clock.advance(10 * MINUTE_MS - 1);
  expect(told).toHaveLength(1);
  await clock.advance(1);
  const second = { ...first, hash: await headOnDisk(), sends: 1 };
  expect(second.hash).not.toBe(first.hash);
  expect(told).toEqual([first, second]);
  expect(teller.told).toEqual({ ...second, at: clock.wallNow() });
  end.abort();
  await keeping;
  expect(teller.told).toBeUndefined();
  await clock.advance(60 * MINUTE_MS);
  expect(told).toHaveLength(2);
});

it('tells the last line, also one that was noted without waiting, once the journal is closed', async () => {
  await journal.append(aSend('p', 1));
  journal.noteOutcome(aSend('p', 1), { kind: 'accepted', txhash: 'h' }, 5);
  await journal.close();
  await teller.tellLast();
  expect(told.map(({ hash }) => hash)).toEqual([await headOnDisk()]);
});

it('tells the last line once, and again only where that did not arrive', async () => {
  await journal.append(aSend('p', 1));
  fails = true;
  await teller.tellLast();
  fails = false;
  await teller.tellLast();
  await teller.tellLast();
  expect({ told: told.length, logged: logged.length }).toEqual({ told: 1, logged: 2 });
});

it('continues where Redis is unavailable: the log has it', async () => {
  fails = true;
  const end = new AbortController();
  const keeping = teller.keep(end.signal);
  await clock.advance(10 * MINUTE_MS);
  expect({ told: told.length, logged: logged.length }).toEqual({ told: 0, logged: 2 });
  fails = false;
  await clock.advance(10 * MINUTE_MS);
  expect(told).toHaveLength(1);
  end.abort();
  await keeping;
});
