import { formatMoney, formatTime, shorten } from '../../format.js';
import { formatCsvHeader, formatCsvRows, type CsvOptions } from '../../format-csv.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import { lastMessage, type Payout } from '../../ledger/payout.js';
import type { ReceiptVerifier } from '../../control/intents/receipt-verifier.js';
import type { CliContext } from '../context/cli-context.js';
import { colourState } from '../output/colour-state.js';
import { toPayoutJson } from '../output/payout-json.js';
import { formatTable } from '../output/format-table.js';

/** Writes one page of payouts. */
export type WritePayouts = (payouts: readonly Payout[], context: CliContext) => void;

/** @param verifier - says of each whether its final state is signed; undefined without a keyring */
export function createLineWriter(verifier: ReceiptVerifier | undefined): WritePayouts {
  return (payouts, context) => {
    for (const payout of payouts) context.writeJson(toPayoutJson(verifier?.mark(payout) ?? payout));
  };
}

/** The columns are named once, and only when Redis has replied. */
export function createCsvWriter(options: CsvOptions): WritePayouts {
  let header = formatCsvHeader();
  return (payouts, { writeCsv }) => {
    writeCsv(`${header}${formatCsvRows(payouts, options)}`);
    header = '';
  };
}

/** One table for each page: the longest value of a hundred thousand rows is not known before the last one. */
export function createTableWriter(currencies: readonly Currency[]): WritePayouts {
  return (payouts, context) => {
    if (payouts.length > 0) writeTable(payouts, context, currencies);
  };
}

function writeTable(payouts: readonly Payout[], { write, colours }: CliContext, currencies: readonly Currency[]): void {
  const head = ['PAYOUT', 'STATE', 'AMOUNT', 'ADDRESS', 'TXHASH', 'SINCE (UTC)', 'MESSAGE'];
  const rows = payouts.map((payout) => [
    payout.payoutId,
    colourState(payout.state, colours),
    formatMoney(payout.amount, payout.paymentId, currencies),
    shorten(payout.addressTo),
    shorten(payout.txhash ?? ''),
    formatTime(payout.updatedAt),
    lastMessage(payout) ?? '',
  ]);
  write(formatTable([head.map((text) => colours.dim(text)), ...rows], [2]));
}
