import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import type { OpenedAccount } from '../worker/account-control.js';
import type { Signing } from './intents/intent-signer.js';
import type { AccountKeyring } from './keys/current-keyring.js';
import type { CurrentPolicy } from './policy/current-policy.js';

/** A policy as last read: its parts change together. */
export type PolicyInForce = Pick<CurrentPolicy, 'policy' | 'hash' | 'isListed' | 'longestWindowMs'>;

export interface ControlAccount extends Pick<Signing, 'platformId' | 'audience'> {
  /** Undefined if signing is not required: then no approvals count. */
  readonly keyring?: AccountKeyring | undefined;
  readonly current?: PolicyInForce | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What the parts of a worker's control share. It goes down unchanged, and each part takes its `Pick`. */
export interface ControlRuntime extends ControlAccount, OpenedAccount {
  /** The shortest time between two moves of a rate's anchor; a simulation has shorter days. */
  readonly rateMoveEveryMs?: number | undefined;
}

export interface PolicedRuntime extends ControlRuntime {
  readonly current: PolicyInForce;
}
