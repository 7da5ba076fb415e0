import { ACCOUNT_WAYS } from './account.js';
import { ARCHIVE_WAYS } from './archive.js';
import { CLOCK_WAYS } from './clock.js';
import { GATEWAY_WAYS } from './gateway.js';
import { JOURNAL_WAYS } from './journal.js';
import { LOG_WAYS } from './log.js';
import { POLICY_WAYS } from './policy.js';
import { QUEUE_WAYS } from './queues.js';
import { REDIS_WAYS } from './redis.js';
import { SIGNED_WAYS } from './signed.js';
import { WORKER_WAYS } from './worker.js';

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
  ...CLOCK_WAYS,
  ...LOG_WAYS,
];
