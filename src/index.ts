/** The public names of the package, one by one. */
export { PayoutProducer, type BulkEnqueue, type BulkResult, type EnqueuedPayout } from './producer/payout-producer.js';
export type { PayoutProducerOptions } from './producer/account-access.js';
export type { BatchStats } from './producer/batch-stats.js';
export type { AccountStats } from './ledger/account-stats.js';
export type { HistoryEntry, Payout, PayoutInput } from './ledger/payout.js';
export type { ListOptions, PayoutPage } from './ledger/payout-list.js';
export { FINAL_STATES, PAYOUT_STATES, STATE_MEANING, type PayoutState } from './ledger/states.js';
export {
  ClosedError,
  ConflictError,
  InvalidConfigError,
  InvalidInputError,
  NotFoundError,
  PayoutError,
  RedisUnavailableError,
  WaitTimeoutError,
  type ErrorCode,
  type Problem,
} from './errors.js';
export { connectRedis, type RedisClient, type RedisRole } from './redis.js';
export type { Clock } from './clock.js';
export { createLogger, silentLogger, type Logger } from './logger.js';
