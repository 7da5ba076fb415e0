import { adoptLedger, adoptSends } from '../ledger/adopt-ledger.js';
import { readLedger } from '../ledger/ledger-connection.js';
import type { AccountAccess } from '../producer/account-access.js';
import { FileSendJournal } from '../worker/file-send-journal.js';
import type { Person } from './person.js';

/** What came of it. */
export interface Adoption {
  readonly ledgerId: string;
  readonly epoch: number;
  /** Sends begun, as ledger and journal both know it now. */
  readonly sends: number;
  /** The payouts that became `unknown`. */
  readonly unknown: readonly string[];
}

/**
 * Makes ledger and send journal of this host agree again.
 *
 * The order matters: every send is in the ledger before the ledger is raised, and the ledger is raised before the journal
 * is bound to it. A crash in between leaves the two in disagreement, so that the worker goes on refusing, and doing it
 * again ends it.
 * @param dir - the folder of the journals
 * @throws RedisUnavailableError; Error when the journal cannot be read or written
 */
export async function adoptByJournal({ ledger }: AccountAccess, dir: string, person: Person): Promise<Adoption> {
  const { connection } = ledger;
  const journal = await FileSendJournal.open({ dir, platformId: connection.platformId });
  try {
    if (journal.ledger === undefined) throw new Error(`The send journal in ${dir} is empty`);
    const witness = journal.ledger;
    const { ledgerId } = await readLedger(connection);
    const reason = `sent, says the send journal, but the ledger forgot it: ${person.reason}`;
    const unknown = await adoptSends(connection, journal.lastSends(Infinity), { by: person.by, reason });
    const raised = await adoptLedger(connection, witness, person);
    await journal.bind({ ledgerId, ...raised });
    return { ledgerId, ...raised, unknown };
  } finally {
    await journal.close();
  }
}
