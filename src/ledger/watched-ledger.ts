import { RedisSenderLedger } from './redis-sender-ledger.js';

/** The sender's view of a ledger for a process that only watches it, while another one works for the account. */
export class WatchedLedger extends RedisSenderLedger {
  /** The lease is for the other one, also while that does not hold it yet. */
  override async acquireLease(): Promise<number | undefined> {
    return Promise.resolve(undefined);
  }
}
