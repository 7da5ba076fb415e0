import { RedisSenderLedger } from './redis-sender-ledger.js';

/** The sender's ledger for a process that only watches it, while another one works for the account. */
export class WatchedLedger extends RedisSenderLedger {
  /** The other process must get the lease, even if it does not hold it yet. */
  override async acquireLease(): Promise<number | undefined> {
    return Promise.resolve(undefined);
  }
}
