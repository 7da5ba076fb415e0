/** A local gateway for development, demonstrations and tests: real HTTP, the documented rules, faults on demand. */
export { startSandbox } from './start-sandbox.js';
export type { Sandbox, SandboxControls } from './control-service.js';
export type { SandboxAccountSettings, SandboxOptions } from './sandbox-options.js';
export { OPEN_POINT_NAMES, type SandboxV2Options } from './v2/open-points.js';
export type { SandboxStats } from './sandbox-account.js';
export type { Arrival } from './sandbox-account.js';
export type { Payment, PaymentGroup } from './sandbox-account.js';
export { FAULT_DESCRIPTIONS, type FaultKind, type FaultRule } from './fault-rule.js';
export type { DelayRange } from './latency.js';
export type { EndpointName } from './endpoint-name.js';
