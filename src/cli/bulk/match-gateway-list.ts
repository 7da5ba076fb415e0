import { formatCount, formatTimeUtc, toIsoTime } from '../../base/format.js';
import { PayoutOperator } from '../../control/payout-operator.js';
import type { Gateway } from '../../gateway/gateway.js';
import type { Actor, Payout } from '../../ledger/payout.js';
import { listPayouts } from '../../ledger/payout-queries.js';
import { matchPayments, type PaymentMatches } from '../../operator/match-payments.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import { withAccount, withGateway } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { readVariable } from '../context/flags.js';
import { formatTable } from '../output/format-table.js';
import { type GatewayList, parseMap, readGatewayList } from './read-gateway-list.js';
import { type ResolveFlags, toSentSteps } from './resolve-many.js';
import { runBulk } from './run-bulk.js';
import type { ChosenPayout } from './survey-payouts.js';

/**
 * Matches the `unknown` payouts with the gateway's own list of payments, and shows what fits. With `--apply` the payouts
 * that match follow their transactions, once the gateway has confirmed each. It never says that a payout was not sent.
 */
export async function matchGatewayList(context: CliContext, flags: ResolveFlags, actor: Actor): Promise<void> {
  const { fromGateway = '', map, apply, json } = flags;
  const signal = context.stopSignal();
  const list = await readGatewayList(context, fromGateway, parseMap(map), signal);
  const match = async ({ ledger }: LedgerAccess) => {
    const payouts = await readUnknown(ledger);
    const isHeld = async (gatewayId: string) => (await ledger.findByGatewayId(gatewayId)) !== undefined;
    return matchPayments(payouts, list.payments, isHeld);
  };
  if (apply !== true) {
    const matches = await withAccount(context, match);
    if (json) context.writeJson(toJson(matches, list));
    else context.write(`${describe(matches, list)}Nothing was changed: --apply follows the transactions that match.\n`);
    return;
  }
  const atOnce = readVariable('STATUS_POLL_RATE', context.environment);
  await withGateway(context, async (gateway: Gateway) =>
    withAccount(context, async (account) => {
      const matches = await match(account);
      (json ? context.writeError : context.write)(describe(matches, list));
      const payouts = matches.matched.map(({ payout: { payoutId, attempt }, payment: { gatewayId, line } }) => ({
        ...{ payoutId, attempt, gatewayId, line },
      }));
      const operator = new PayoutOperator({ account, gateway });
      // What the gateway does not confirm is no match: here nobody is told how to force it.
      const follow = async ({ payoutId, attempt, gatewayId = '' }: ChosenPayout) =>
        operator.resolve({ payoutId, attempt }, { kind: 'sent', gatewayId }, actor);
      const change = {
        ...toSentSteps(follow, atOnce, 1_000),
        from: ['unknown'] as const,
        // Another attempt may have been sent meanwhile.
        findStale: ({ attempt }: { readonly attempt?: number }, payout: Payout) =>
          attempt === payout.attempt
            ? undefined
            : `payout ${payout.payoutId} was sent again meanwhile: run the same command again`,
        describe: (these: string) => `Follow the transactions of ${these}`,
        describeDone: (these: string) => `${these} in progress: their transactions are followed`,
      };
      await runBulk(context, account, change, { kind: 'named', payouts }, { ...flags, yes: true }, signal);
    }),
  );
}

/** What cannot be read is in `payouts list`; it matches nothing. */
async function readUnknown({ connection }: LedgerAccess['ledger']): Promise<readonly Payout[]> {
  const found: Payout[] = [];
  let place: { readonly cursor?: string } | undefined = {};
  while (place !== undefined) {
    const { payouts, next } = await listPayouts(connection, { state: 'unknown', limit: 1_000, ...place });
    found.push(...payouts);
    place = next === undefined ? undefined : { cursor: next };
  }
  return found;
}

function describe(
  { matched, ambiguous, unmatched }: PaymentMatches,
  { payments, withoutTransaction }: GatewayList,
): string {
  const rows = [
    ...matched.map(({ payout, payment, by }) => [
      ...[payout.payoutId, 'matches', payment.gatewayId, `line ${payment.line}`, `by ${by}`],
    ]),
    ...ambiguous.flatMap(({ payouts, payments: fitting }) => {
      const fit = `fits ${formatCount(fitting.length, 'payment')}, which fit ${formatCount(payouts.length, 'payout')}`;
      const lines = `line ${fitting.map(({ line }) => line).join(', ')}`;
      return payouts.map(({ payoutId }) => [payoutId, 'ambiguous', '', lines, `${fit}: compare them one by one`]);
    }),
    ...unmatched.map(({ payoutId, updatedAt }) => [
      ...[payoutId, 'no match', '', '', `unknown since ${formatTimeUtc(updatedAt)}; it may be paid all the same`],
    ]),
  ];
  const read = `${formatCount(payments.length, 'payment')} read, ${formatCount(withoutTransaction, 'row')} without a transaction left out.\n`;
  return rows.length === 0 ? `${read}No payout is unknown.\n` : `${read}${formatTable(rows)}`;
}

function toJson(
  { matched, ambiguous, unmatched }: PaymentMatches,
  { payments, withoutTransaction }: GatewayList,
): object {
  return {
    ...{ payments: payments.length, withoutTransaction },
    matched: matched.map(({ payout: { payoutId, attempt }, payment: { gatewayId, line, at }, by }) => ({
      ...{ payoutId, attempt, gatewayId, line, at: toIsoTime(at), by },
    })),
    ambiguous: ambiguous.map(({ payouts, payments: fitting }) => ({
      payoutIds: payouts.map(({ payoutId }) => payoutId),
      payments: fitting.map(({ gatewayId, line }) => ({ gatewayId, line })),
    })),
    unmatched: unmatched.map(({ payoutId }) => payoutId),
  };
}
