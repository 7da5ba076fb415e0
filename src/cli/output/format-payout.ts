import type { Currency } from '../../ledger/gateway-facts.js';
import type { HistoryEntry, Payout } from '../../ledger/payout.js';
import { STATE_MEANING } from '../../ledger/states.js';
import { colourState } from './colour-state.js';
import type { CliContext } from '../context/cli-context.js';
import { formatTable } from './format-table.js';
import { formatMoney, formatTime } from '../../format.js';

type Colours = CliContext['colours'];

/**
 * One payout as text: all its fields, then its history.
 * @param receipt - who signed its final state, where that was verified
 * @param approvals - what was said of it, one line each
 */
export function formatPayout(
  payout: Payout & { readonly archivedIn?: string },
  colours: Colours,
  currencies: readonly Currency[],
  receipt?: string,
  approvals: readonly string[] = [],
): string {
  const { state } = payout;
  const facts: readonly [name: string, value: string | number | undefined][] = [
    ['amount', formatMoney(payout.amount, payout.paymentId, currencies)],
    ['payment id', payout.paymentId],
    ['address', payout.addressTo],
    ['symbol', payout.symbol],
    ['txhash', payout.txhash],
    ['paid too late as', payout.lateTxhash],
    ['fee', payout.fee],
    ['receipt', receipt],
    ['held', payout.held && `${payout.held.kind} (${payout.held.reason}): ${payout.held.message}`],
    ...approvals.map((approval): [string, string] => ['approval', approval]),
    ['message', payout.message],
    ['send attempts', payout.attempt],
    ['reference', payout.reference],
    ['batch', payout.batch],
    ['priority', payout.priority],
    ['not before', payout.notBefore],
    ['requested by', payout.requestedBy],
    ['signed by', payout.signed?.key],
    ['signed until', payout.signed?.expiresAt],
    ['archived in', payout.archivedIn],
    ['metadata', payout.metadata === undefined ? undefined : JSON.stringify(payout.metadata)],
  ];
  const rows = facts.flatMap(([name, value]) => (value === undefined ? [] : [['', colours.dim(name), String(value)]]));
  const history = payout.history.map((entry) => formatEntry(entry, colours));
  return [
    `${colours.bold(payout.payoutId)}  ${colourState(state, colours)}: ${STATE_MEANING[state]}\n\n`,
    formatTable(rows),
    `\nHistory (UTC)\n`,
    formatTable(history),
  ].join('');
}

function formatEntry({ at, to, by, reason }: HistoryEntry, colours: Colours): string[] {
  return [
    '',
    formatTime(at),
    colourState(to, colours),
    [by === undefined ? '' : `by ${by}`, reason ?? ''].filter(Boolean).join(': '),
  ];
}
