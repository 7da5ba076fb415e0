/** The names that an application needs which only enqueues and follows payouts: without the worker, and light to load. */
export { PayoutProducer, type PayoutProducerOptions } from './control/payout-producer.js';
export type { BulkEnqueue, BulkResult, EnqueuedPayout, BatchStats } from './producer/enqueue-results.js';
export type { Signer } from './control/keys/signer.js';
export { openSigner, type OpenedSigner, type SignerOptions } from './control/keys/open-signer.js';
export { type Keyring, type KeyringKey, type KeyRole, readKeyringFile } from './control/keys/keyring.js';
export type { SshKey } from './control/keys/ssh.js';
export type { AccountConnectionOptions } from './queues/open-ledger.js';
export type {
  Approval,
  ApprovalDecision,
  SignedApproval,
  IntentSignature,
  StoredSignature,
  StoredReceipt,
} from './ledger/control-record.js';
export type {
  Actor,
  HeldFor,
  HistoryEntry,
  MissingApprovals,
  Payout,
  PayoutComment,
  PayoutInput,
} from './ledger/payout.js';
export type { LookUpAnswer, OrderLookUp } from './ledger/order-look-up.js';
export type { EventsOptions, PayoutEventListener } from './producer/events/event-group.js';
export type { PayoutEvent, PayoutEventName, PayoutEventType } from './producer/events/payout-events.js';
export type { AccountStats } from './ledger/reads/account-stats.js';
export type { Pause } from './ledger/sender-ledger.js';
export type { ListOptions, PayoutPage, UnreadablePayout } from './ledger/payout-queries.js';
export { FINAL_STATES, PAYOUT_STATES, STATE_MEANING, type PayoutState, type WatchedState } from './ledger/states.js';
export {
  ClosedError,
  ConflictError,
  InvalidConfigError,
  InvalidInputError,
  NotFoundError,
  NotVerifiedError,
  PayoutError,
  RedisUnavailableError,
  SignerError,
  StoppedError,
  TransactionMismatchError,
  UnsupportedFormatError,
  WaitTimeoutError,
  type ErrorCode,
  type Problem,
} from './base/errors.js';
export { connectRedis, type RedisClient, type RedisRole } from './base/redis.js';
export type { Clock } from './base/clock.js';
export { silentLogger, type Logger } from './base/logger.js';
