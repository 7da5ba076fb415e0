import type { Held } from '../support/attack.js';
import { bulk } from '../support/forging-proxy.js';

/** Replies of an honest Redis, altered on the way to the worker. */
export interface MiddleAttack {
  readonly name: string;
  /** Alters a piece of a reply. */
  readonly alter: (reply: string) => string;
  /** `held` with the payout queued when it begins, and told as altered; `paid once` where it begins with the payout paid. */
  readonly expect: Held | 'paid once';
}

/** To whom the honest producer's payout of 12.5 goes. */
export const HONEST_ADDRESS = 'wallet-honest0';

const field = (name: string, value: string): string => bulk(name) + bulk(value);
const told = (name: string, from: string, to: string) => (reply: string) =>
  reply.replaceAll(field(name, from), field(name, to));
const QUEUED = told('state', 'completed', 'queued');
const BAD_SIGNATURE: Held = { held: 'bad_signature', isTampering: true };

export const MIDDLE: readonly MiddleAttack[] = [
  {
    name: 'address replaced by one of the same length',
    alter: (reply) => reply.replaceAll(HONEST_ADDRESS, 'wallet-thief00'),
    expect: BAD_SIGNATURE,
  },
  { name: 'amount replaced by one of the same length', alter: told('amount', '12.5', '99.5'), expect: BAD_SIGNATURE },
  { name: 'payment id replaced by one of the same length', alter: told('paymentId', '6', '1'), expect: BAD_SIGNATURE },
  { name: 'state completed told as queued', alter: QUEUED, expect: 'paid once' },
  {
    name: 'state completed told as queued, attempt as 0',
    alter: (reply) => told('attempt', '1', '0')(QUEUED(reply)),
    expect: 'paid once',
  },
];
