import { bulk } from '../support/forging-proxy.js';
import type { Held } from '../support/outcome.js';

/** Replies of an honest Redis, altered on the way to the worker. */

export interface MiddleAttack {
  readonly name: string;
  /** Alters a piece of a reply. */
  readonly alter: (reply: string) => string;
  /**
   * `held` with the payout queued when it begins, and told as altered; `paid once` where it begins with the payout paid: it is
   * not paid again.
   */
  readonly expect: Held | 'paid once';
}

/** To whom the honest producer's payout of 12.5 goes. */
export const HONEST_ADDRESS = 'wallet-honest0';

const QUEUED = bulk('state') + bulk('queued');
const COMPLETED = bulk('state') + bulk('completed');
const BAD_SIGNATURE: Held = { held: 'bad_signature', isTampering: true };

export const MIDDLE: readonly MiddleAttack[] = [
  {
    name: 'address replaced by one of the same length',
    alter: (reply) => reply.replaceAll(HONEST_ADDRESS, 'wallet-thief00'),
    expect: BAD_SIGNATURE,
  },
  {
    name: 'amount replaced by one of the same length',
    alter: (reply) => reply.replaceAll(bulk('amount') + bulk('12.5'), bulk('amount') + bulk('99.5')),
    expect: BAD_SIGNATURE,
  },
  {
    name: 'payment id replaced by one of the same length',
    alter: (reply) => reply.replaceAll(bulk('paymentId') + bulk('6'), bulk('paymentId') + bulk('1')),
    expect: BAD_SIGNATURE,
  },
  {
    name: 'state completed told as queued',
    alter: (reply) => reply.replaceAll(COMPLETED, QUEUED),
    expect: 'paid once',
  },
  {
    name: 'state completed told as queued, attempt as 0',
    alter: (reply) =>
      reply.replaceAll(COMPLETED, QUEUED).replaceAll(bulk('attempt') + bulk('1'), bulk('attempt') + bulk('0')),
    expect: 'paid once',
  },
];
