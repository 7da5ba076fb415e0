import type { BenchAccount, SamplePayout } from '../sample-payouts.js';
import type { Store } from './store.js';
import type { Program } from './program.js';

/** How a payout is shown: `asks` needs a person, `missing` is unknown to the engine. */
export type Shown = 'waits' | 'done' | 'asks' | 'missing';

/** What a merchant's program has of an engine. */
export interface Client {
  enqueue(payouts: readonly SamplePayout[]): Promise<void>;
  look(payoutIds: readonly string[]): Promise<ReadonlyMap<string, Shown>>;
  /** Changes the recipient of a payout that waits, as anyone who can write to the store can. */
  forge(payout: SamplePayout, addressTo: string): Promise<void>;
  close(): Promise<void>;
}

export interface Account extends BenchAccount {
  readonly baseUrl: string;
}

/** One engine with one store, which pays for one account. */
export interface Engine {
  readonly store: Store;
  /** Once a worker has started. */
  client(): Promise<Client>;
  /** @param name - the worker's; who replaces a worker has its name */
  startWorker(name: string): Promise<Program>;
  close(): Promise<void>;
}

export type OpenEngine = (account: Account, isQuick: boolean) => Promise<Engine>;
