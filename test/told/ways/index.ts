import { ARCHIVE_WAYS, JOURNAL_WAYS, POLICY_WAYS, SIGNED_WAYS } from './journal.js';
import { ACCOUNT_WAYS, GATEWAY_WAYS, MACHINE_WAYS, QUEUE_WAYS, REDIS_WAYS, WORKER_WAYS } from './surroundings.js';

/** Every known way in which payouts can stand still. */
export const WAYS = [
  ...[...REDIS_WAYS, ...GATEWAY_WAYS, ...ACCOUNT_WAYS, ...JOURNAL_WAYS, ...ARCHIVE_WAYS],
  ...[...SIGNED_WAYS, ...POLICY_WAYS, ...QUEUE_WAYS, ...WORKER_WAYS, ...MACHINE_WAYS],
];
