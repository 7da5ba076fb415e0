import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { NotFoundError } from '../errors.js';
import { FileSendJournal } from '../journal/file-send-journal.js';
import { readJournal } from '../journal/read-journal.js';
import type { AdoptableJournal } from './adoption.js';

export interface OpenJournals {
  readonly journals: readonly AdoptableJournal[];
  close(): Promise<void>;
}

/**
 * Only reads.
 * @throws NotFoundError if a folder has no journal of the account; UnsupportedFormatError; Error if one cannot be read
 */
export async function readJournals(dirs: readonly string[], platformId: number): Promise<AdoptableJournal[]> {
  const journals: AdoptableJournal[] = [];
  for (const dir of dirs) {
    const journal = await readJournal(dir, platformId);
    if (journal === undefined) {
      throw new NotFoundError(
        `No send journal of account ${platformId} in ${resolve(dir)}. Name the folder of each journal, as SEND_JOURNAL_DIR names it to the worker`,
      );
    }
    const refuse = async (): Promise<void> => Promise.reject(new Error('This journal was opened for reading'));
    journals.push(toAdoptable(journal, dir, { bind: refuse, notePeers: refuse }));
  }
  return journals;
}

/**
 * To bind the journals to an adopted ledger.
 * @throws UnsupportedFormatError; Error if one cannot be read or written
 */
export async function openJournals(dirs: readonly string[], platformId: number): Promise<OpenJournals> {
  const opened: FileSendJournal[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(async (journal) => journal.close()));
  };
  const journals: AdoptableJournal[] = [];
  try {
    for (const dir of dirs) {
      const journal = await FileSendJournal.open({ dir, platformId });
      opened.push(journal);
      const bind: AdoptableJournal['bind'] = async (ledger) => journal.bind(ledger);
      const notePeers: AdoptableJournal['notePeers'] = async (peers) => journal.notePeers(peers);
      journals.push(toAdoptable(journal, dir, { bind, notePeers }));
    }
    return { journals, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function toAdoptable(
  journal: Pick<FileSendJournal, 'journalId' | 'ledger' | 'peers' | 'lastSends' | 'items'>,
  dir: string,
  writes: Pick<AdoptableJournal, 'bind' | 'notePeers'>,
): AdoptableJournal {
  return {
    journalId: journal.journalId,
    ledger: journal.ledger,
    peers: journal.peers,
    place: { host: hostname(), dir: resolve(dir) },
    lastSends: (limit) => journal.lastSends(limit),
    items: () => journal.items(),
    ...writes,
  };
}
