/** The public names of the package, one by one. */
export { PayoutProducer, type PayoutProducerOptions } from './control/payout-producer.js';
export type { BulkEnqueue, BulkResult, EnqueuedPayout } from './producer/enqueue-results.js';
export type { SigningKeyOption } from './control/keys/signing-key-option.js';
export type { AccountConnectionOptions } from './queues/open-ledger.js';
export type { Approval, ApprovalDecision, SignedApproval } from './ledger/control-record.js';
export type { IntentSignature, StoredSignature } from './ledger/control-record.js';
export type { StoredReceipt } from './ledger/control-record.js';
export { PayoutOperator, type PayoutOperatorOptions } from './control/payout-operator.js';
export type { DecidedPayout, Resolution } from './operator/resolve-payout.js';
export type { PauseState } from './operator/set-pause.js';
export type { AdoptLedgerOptions, AdoptLedgerResult } from './operator/adopt-ledger.js';
export type { Adoption, AdoptionPlan } from './operator/adoption.js';
export type { Actor } from './ledger/actor.js';
export type { ActSigner } from './control/approvals/act-signer.js';
export { openActSigner, type ActSignerOptions } from './control/keys/open-act-signer.js';
export type { Keyring } from './control/keys/keyring.js';
export { readKeyringFile } from './control/keys/keyring-file.js';
export type { EventsOptions } from './producer/events/event-group.js';
export type { PayoutEventListener } from './producer/events/event-listeners.js';
export type { PayoutEvent, PayoutEventName, PayoutEventType } from './producer/events/payout-events.js';
export type { BatchStats } from './producer/batch-stats.js';
export type { AccountStats } from './ledger/account-stats.js';
export type { KnownJournal, Objection } from './ledger/sender-ledger.js';
export type { HeldFor, HistoryEntry, Payout, PayoutInput } from './ledger/payout.js';
export type { ListOptions, PayoutPage } from './ledger/payout-queries.js';
export { FINAL_STATES, PAYOUT_STATES, STATE_MEANING, type PayoutState } from './ledger/states.js';
export {
  ClosedError,
  ConflictError,
  InvalidConfigError,
  InvalidInputError,
  NotFoundError,
  NotVerifiedError,
  PayoutError,
  RedisUnavailableError,
  StoppedError,
  TransactionMismatchError,
  UnsupportedFormatError,
  WaitTimeoutError,
  type ErrorCode,
  type Problem,
} from './errors.js';
export { connectRedis, type RedisClient, type RedisRole } from './redis.js';
export type { Clock } from './clock.js';
export { createLogger } from './create-logger.js';
export { silentLogger, type Logger } from './logger.js';
export { createPayoutWorker, PayoutWorker } from './control/payout-worker.js';
export type { AccountOptions } from './worker/payout-worker.js';
export type { PayoutWorkerOptions } from './control/payout-worker.js';
export { DEFAULT_ACCOUNT_SETTINGS, type AccountSettings } from './account-settings.js';
export type { AccountStatus } from './worker/account-worker-options.js';
export type { AccountWorker } from './worker/account-worker.js';
export type { WorkerObserver } from './worker/sender/worker-observer.js';
export {
  createWorkerMetrics,
  type WorkerMetrics,
  type WorkerMetricsOptions,
} from './worker/monitoring/worker-metrics.js';
export { startHealthServer, type HealthServer, type HealthServerOptions } from './worker/monitoring/health-server.js';
export { createGatewayClient, type GatewayClient, type GatewayClientOptions } from './gateway/gateway-client.js';
export type { Gateway, GatewayCapabilities, PaymentStatus, StatusGateway } from './gateway/gateway.js';
export type { SentOutcome, WithdrawConnection, WithdrawOutcome, WithdrawRequest } from './gateway/withdraw-gateway.js';
export type { Currency, PaymentWallet, TransactionStatus } from './gateway/endpoints.js';
export { GatewayInvalidResponseError, GatewayRejectedError, GatewayUnavailableError } from './gateway/errors.js';
