import type { SentOutcome } from '../gateway/gateway.js';
import type { LedgerConnection } from './ledger-connection.js';
import { toTxhashField } from './payout-record.js';
import { toLine } from './payout.js';
import { type BreakerRule, type FinishResult, parseRejection, type SendAttempt } from './sender-ledger.js';

/** What became of an attempt, and how that is known. */
interface FinishedSend {
  readonly attempt: SendAttempt;
  readonly result: SentOutcome;
  readonly rule: BreakerRule;
  /** How long the request, which was reset, may still be on its way without a response. */
  readonly inFlightMs: number;
  /** Set if it is not the attempt's own response: the gateway was asked. The reason for the history. */
  readonly found?: string | undefined;
}

/** Records the outcome of an attempt. Repeating it is safe. @throws RedisUnavailableError */
export async function finishSend(connection: LedgerConnection, finished: FinishedSend): Promise<FinishResult> {
  const first = await runScript(connection, finished, finished.attempt.payoutId);
  const rejection = parseRejection('finish-send', first);
  const reply = rejection === undefined ? first : await runScript(connection, finished, rejection.payoutId);
  const [recorded, pausedReason] = reply as [number, string];
  if (recorded === 2) return { recorded: false, latePayment: true };
  return recorded === 1 && pausedReason !== '' ? { recorded: true, pausedReason } : { recorded: recorded === 1 };
}

/** @param holder - the payout that has the gatewayId, if it is another one */
async function runScript(
  { clock, run, keys }: LedgerConnection,
  { attempt: { payoutId, attempt, token }, result, rule, inFlightMs, found = '' }: FinishedSend,
  holder: string,
): Promise<unknown> {
  const [to, gatewayId, txhash, message] = describeResult(result);
  const args = {
    ...{ at: clock.wallNow(), attempt, token, to, gatewayId, txhash, message, found },
    cause: rule.maxPayoutRejectionsInARow === undefined ? 'account' : 'payout',
    maxRejections: rule.maxPayoutRejectionsInARow ?? rule.maxRejectionsInARow,
    maxUnknowns: rule.maxUnknownsInARow,
    blockedReason: toLine(rule.blockedReason ?? ''),
    inFlightMs: Math.ceil(inFlightMs),
  };
  const bucket = gatewayId === '' ? [] : [keys.gatewayIdBucket(gatewayId)];
  return run('finish-send', args, [keys.payout(payoutId), keys.payout(holder), ...bucket]);
}

function describeResult(result: SentOutcome): [to: string, gatewayId: string, txhash: string, message: string] {
  switch (result.kind) {
    case 'accepted':
      return ['in_progress', result.gatewayId, toTxhashField(result), ''];
    case 'rejected':
      return ['rejected', '', '', toLine(result.message)];
    case 'unknown':
      return ['unknown', '', '', toLine(result.reason)];
  }
}
