import { bulk } from '../support/forging-proxy.js';

/** Replies of an honest Redis, altered on the way to the worker. */
export interface MiddleAttack {
  readonly name: string;
  /** A reason: the payout is queued when it begins, and held; `paid once`: it was paid before. */
  readonly expect: 'bad_signature' | 'paid once';
  /** Alters a piece of a reply. */
  readonly alter: (reply: string) => string;
}

/** To whom the honest producer's payout of 12.5 goes. */
export const HONEST_ADDRESS = 'wallet-honest0';

const told = (name: string, from: string, to: string) => (reply: string) =>
  reply.replaceAll(bulk(name) + bulk(from), bulk(name) + bulk(to));
const toThief = (reply: string): string => reply.replaceAll(HONEST_ADDRESS, 'wallet-thief00');
const queued = told('state', 'completed', 'queued');
const again = (reply: string): string => told('attempt', '1', '0')(queued(reply));

export const MIDDLE: readonly MiddleAttack[] = [
  { name: 'address replaced by one of the same length', expect: 'bad_signature', alter: toThief },
  { name: 'amount replaced', expect: 'bad_signature', alter: told('amount', '12.5', '99.5') },
  { name: 'state completed told as queued', expect: 'paid once', alter: queued },
  { name: 'state completed told as queued, attempt as 0', expect: 'paid once', alter: again },
];
