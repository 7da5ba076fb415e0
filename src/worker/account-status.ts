import type { SenderStatus } from './sender/sender-status.js';

/** What an account's worker is doing. */
export type AccountStatus = SenderStatus | RefusedRedis | { readonly role: 'stopped' };

/** Nothing is sent because Redis may lose it, or refuses it; a lease is kept meanwhile, since no other process has a better Redis. */
export interface RefusedRedis {
  readonly role: 'refused';
  readonly reason: string;
  readonly cause: 'redis';
  /** Of the lease; where it is held only. */
  readonly epoch?: number;
}
