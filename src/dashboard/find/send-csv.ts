import { once } from 'node:events';
import type { Response } from 'express';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { formatCsvHeader, formatCsvRows } from '../../format-csv.js';
import { findListed } from './find-listed.js';
import type { ListQuery } from './list-query.js';

const ROWS_AT_ONCE = 500;

/** How long one step searches: a download that finds few rows still notices that the reader has gone. */
const STEP_MS = 1_000;

interface CsvOptions {
  readonly fileName: string;
  /** For HEAD: the headers only. */
  readonly isHead: boolean;
}

/**
 * Sends all rows of a list as CSV, page by page, as fast as the client takes them. When Redis becomes unavailable half-way,
 * the connection is broken off: a file that is cut short must not look whole.
 */
export async function sendCsv(
  response: Response,
  connection: LedgerConnection,
  query: ListQuery,
  { fileName, isHead }: CsvOptions,
): Promise<void> {
  let page = await findListed(connection, query, { limit: ROWS_AT_ONCE, searchMs: STEP_MS });
  response.type('text/csv').attachment(fileName);
  if (isHead) {
    response.end();
    return;
  }
  let text = formatCsvHeader() + formatCsvRows(page.payouts, { safe: true });
  for (;;) {
    const isRoom = text === '' || response.write(text);
    if (!isRoom) await untilRoom(response);
    if (response.destroyed || page.next === undefined) break;
    page = await findListed(connection, { ...query, after: page.next }, { limit: ROWS_AT_ONCE, searchMs: STEP_MS });
    text = formatCsvRows(page.payouts, { safe: true });
  }
  response.end();
}

/** Waits until the client took what was written, or has gone. */
async function untilRoom(response: Response): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  } finally {
    // A large list has thousands of pages: none may leave a listener behind.
    settled.abort();
  }
}
