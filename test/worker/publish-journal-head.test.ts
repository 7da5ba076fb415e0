import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import type { JournalHead } from '../../src/ledger/sender-ledger.js';
import { silentLogger, type Logger } from '../../src/base/logger.js';
import { JournalHeadPublisher } from '../../src/worker/account-sending.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { aSend, LEDGER, makeJournalFolder, type JournalFolder } from '../journal/support/journal-folder.js';

const MINUTE_MS = 60_000;

let clock: ManualClock;
let folder: JournalFolder;
let journal: FileSendJournal;
let published: JournalHead[];
let logged: object[];
let fails: boolean;
let publisher: JournalHeadPublisher;

beforeEach(async () => {
  clock = new ManualClock();
  folder = await makeJournalFolder();
  journal = await folder.open();
  await journal.bind(LEDGER);
  [published, logged, fails] = [[], [], false];
  const logger: Logger = { ...silentLogger, info: (fields) => void logged.push(fields) };
  const publish = async (head: JournalHead): Promise<void> => {
    if (fails) throw new Error('Redis unavailable');
    published.push(head);
    return Promise.resolve();
  };
  publisher = new JournalHeadPublisher({ journal, clock, logger }, publish);
});
afterEach(async () => folder.close());

const headOnDisk = async (): Promise<string | undefined> => (await verifyJournal(folder.dir, 1))?.head;

it('publishes the newest line at once and every ten minutes, in the log too, and stops with the lease', async () => {
  const end = new AbortController();
  const keeping = publisher.keep(end.signal);
  await clock.advance(0);
  const first = { journalId: journal.journalId, hash: await headOnDisk(), sends: 0 };
  expect(published).toEqual([first]);
  expect(logged).toEqual([{ head: first.hash, journalId: first.journalId, sends: 0 }]);
  await journal.append(aSend('p', 1));
  await clock.advance(10 * MINUTE_MS - 1);
  expect(published).toHaveLength(1);
  await clock.advance(1);
  const second = { ...first, hash: await headOnDisk(), sends: 1 };
  expect(second.hash).not.toBe(first.hash);
  expect(published).toEqual([first, second]);
  expect(publisher.published).toEqual({ ...second, at: clock.wallNow() });
  end.abort();
  await keeping;
  expect(publisher.published).toBeUndefined();
  await clock.advance(60 * MINUTE_MS);
  expect(published).toHaveLength(2);
});

it('publishes the last line once, and again only where that did not arrive', async () => {
  await journal.append(aSend('p', 1));
  // Nobody waits for this line; closing the journal does.
  journal.noteOutcome(aSend('p', 1), { kind: 'accepted', txhash: 'h' }, 5);
  await journal.close();
  fails = true;
  await publisher.publishLast();
  fails = false;
  await publisher.publishLast();
  await publisher.publishLast();
  expect(published.map(({ hash }) => hash)).toEqual([await headOnDisk()]);
  expect(logged).toHaveLength(2);
});
