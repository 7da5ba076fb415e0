import type { Telemetry } from 'bullmq';
import type { Clock } from '../clock.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Logger } from '../logger.js';
import { failsafeTelemetry } from './failsafe-telemetry.js';
import { OutboxRelay } from './outbox-relay.js';
import { PayoutQueues } from './payout-queues.js';

export interface AccountQueuesOptions {
  readonly ledger: PayoutLedger;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
  /** See `openLedger`. @defaultValue false */
  readonly readOnly?: boolean;
  /** Before the first status poll of a payout, in ms. @defaultValue 0 */
  readonly firstPollAfterMs?: number;
}

export interface AccountQueues {
  readonly queues: PayoutQueues;
  readonly relay: OutboxRelay;
}

export function createAccountQueues(options: AccountQueuesOptions): AccountQueues {
  const { ledger, clock, logger, telemetry, readOnly = false, firstPollAfterMs = 0 } = options;
  const queues = new PayoutQueues(ledger.connection.redis, {
    prefix: ledger.connection.keys.prefix,
    wallNow: () => clock.wallNow(),
    logger,
    readOnly,
    ...(telemetry === undefined ? {} : { telemetry: failsafeTelemetry(telemetry) }),
  });
  return { queues, relay: new OutboxRelay({ ledger, queues, firstPollAfterMs, clock, logger }) };
}
