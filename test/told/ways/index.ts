import { ACCOUNT_WAYS, GATEWAY_WAYS, MACHINE_WAYS, WORKER_WAYS } from './gateway.js';
import { ARCHIVE_WAYS, JOURNAL_WAYS } from './journal.js';
import { QUEUE_WAYS, REDIS_WAYS } from './redis.js';
import { POLICY_WAYS, SIGNED_WAYS } from './signed.js';

/** Every known way in which payouts can stand still. */
export const WAYS = [
  ...REDIS_WAYS,
  ...GATEWAY_WAYS,
  ...ACCOUNT_WAYS,
  ...JOURNAL_WAYS,
  ...ARCHIVE_WAYS,
  ...SIGNED_WAYS,
  ...POLICY_WAYS,
  ...QUEUE_WAYS,
  ...WORKER_WAYS,
  ...MACHINE_WAYS,
];
