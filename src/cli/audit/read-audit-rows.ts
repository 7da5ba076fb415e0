import type { BoundKeyring } from '../../control/keys/keyring.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import { readJournal } from '../../journal/read-journal.js';
import { readGatewayFacts } from '../../ledger/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readAudited } from '../../ledger/read-audited.js';
import { noJournal, type JournalFolder } from '../context/journal-place.js';
import { toAuditRow, type AuditRow } from '../output/format-audit.js';

export interface AuditRowsOptions extends JournalFolder {
  /** Wall clock, ms. */
  readonly since: number;
  readonly until: number;
  readonly keyring: BoundKeyring | undefined;
  /** Undefined where nothing is read from Redis. */
  readonly connection: LedgerConnection | undefined;
}

/** Records read in one round trip. */
const PAGE = 500;

/**
 * The sends of a journal as rows, the oldest first, by page; the first page may be empty.
 * @throws NotFoundError where there is no journal; RedisUnavailableError; Error when the journal cannot be read
 */
export async function* readAuditRows(options: AuditRowsOptions): AsyncGenerator<AuditRow[]> {
  const { since, until, connection, keyring, platformId } = options;
  const journal = await readJournal(options.dir, platformId);
  if (journal === undefined) throw noJournal(options);
  const currencies = connection === undefined ? [] : (await readGatewayFacts(connection)).currencies;
  const toRows = async (sends: readonly JournalEntry[]): Promise<AuditRow[]> => {
    const payoutIds = sends.map(({ payoutId }) => payoutId);
    const records = connection && (await readAudited(connection, payoutIds));
    return sends.map((send, index) => {
      const found = records?.[index];
      const payout = found?.kind === 'payout' ? found.payout : undefined;
      return toAuditRow(send, { platformId, payout, currencies, keyring });
    });
  };
  let page: JournalEntry[] = [];
  for await (const item of journal.items()) {
    if (!('payoutId' in item) || item.at < since || item.at >= until) continue;
    page.push(item);
    if (page.length < PAGE) continue;
    yield await toRows(page);
    page = [];
  }
  yield await toRows(page);
}
