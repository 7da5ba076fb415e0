/** The public names of the package: those of a producer, and of who runs the worker and decides. */
export * from './producer.js';
export { PayoutOperator, type PayoutOperatorOptions } from './control/payout-operator.js';
export type { DecidedPayout, Resolution } from './operator/resolve-payout.js';
export type { PauseState } from './operator/core-operator.js';
export type { NewComment } from './ledger/payout-comment.js';
export type { AdoptedPayout, HighestKnown } from './ledger/adopt-ledger.js';
export type { AdoptLedgerOptions, AdoptLedgerResult } from './operator/adopt-ledger.js';
export type { CameBack, CameBackList } from './operator/came-back.js';
export type { Adoption, AdoptionPlan, UnreadJournal } from './operator/adoption.js';
export type { NumberRange } from './operator/survey-sends.js';
export type { JournalPeer } from './journal/journal-line.js';
export type { KnownJournal, Objection } from './ledger/sender-ledger.js';
export { createLogger } from './base/create-logger.js';
export { createPayoutWorker, PayoutWorker, type PayoutWorkerOptions } from './control/payout-worker.js';
export type { AccountOptions } from './worker/core-worker.js';
export { DEFAULT_ACCOUNT_SETTINGS, type AccountSettings } from './base/settings.js';
export type { AccountStatus } from './worker/account-runtime.js';
export type { KeyringFacts, PolicyFacts } from './worker/account-control.js';
export type { MonitoredAccount } from './worker/monitoring/account-snapshot.js';
export type { AccountWorker } from './worker/account-worker.js';
export type { GatewayCall, WorkerObserver } from './worker/sender/worker-observer.js';
export {
  createWorkerMetrics,
  type WorkerMetrics,
  type WorkerMetricsOptions,
} from './worker/monitoring/worker-metrics.js';
export { startHealthServer, type HealthServer, type HealthServerOptions } from './worker/monitoring/health-server.js';
export {
  type GatewayAccess,
  type OwnGatewayLimits,
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
  openGateway,
  type OpenGatewayOptions,
} from './gateway/open-gateway.js';
export type { GatewayApi } from './base/settings.js';
export {
  type Balance,
  type BalanceList,
  type ComparedPayment,
  type Currency,
  type CurrencyList,
  describeStop,
  type FactsGateway,
  type FoundPayment,
  type Gateway,
  type GatewayCapabilities,
  type OwnGateway,
  type PaymentDifference,
  type PaymentStatus,
  type PaymentWallet,
  type StatusGateway,
  type StopClass,
  type StopSign,
  type SentOutcome,
  type WithdrawConnection,
  type WithdrawGateway,
  type WithdrawOptions,
  type WithdrawOutcome,
  type WithdrawRequest,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
} from './gateway/gateway.js';
export type { Approve, CurrencyItem, TransactionStatus } from './gateway/open-gateway.js';
export type { Chain } from './gateway/wallet.js';
