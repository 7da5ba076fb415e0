import type { LeaseView } from '../../../src/ledger/sender-ledger.js';

/** Situations in which a rule decides: runs that never come into one say nothing about its rule. */
export const SITUATIONS = [
  'a send begins between the check of a lease and its take-over',
  'an epoch is given out twice',
  'the lease is taken over while a request is on its way',
  'an outcome is recorded by a process that has lost the lease',
  'an outcome is recorded by another process than sent it',
  'a journal entry is written by a process that has lost the lease',
  'a process is stopped between begin and write',
  'a process is killed between begin and write',
  'a process is killed while its request is on its way',
  'a wall clock jumps between begin and write',
  'Redis comes back older',
  'Redis comes back older while a request is on its way',
  'Redis comes back older twice',
  'the sender key is lost while a send is in progress',
  'an attempt is put back',
  'a journal objects',
  'a ledger is adopted',
  'a ledger is adopted, and a journal given up',
  'the disk of a journal hangs',
  'a journal entry that hung is written after the lease has moved',
  'a gateway is probed',
  'a gateway stands still',
  'a request stays in the kernel of its host',
  'a statement about an earlier attempt is refused',
  'an adoption ends a payout again',
  'a gateway that knows order ids',
  'a payment is found by its order id',
  'a janitor finds a payment',
  'a janitor is shown a payment of another amount',
] as const;

export const SIGNED_SITUATIONS = [
  'an attacker strikes',
  'a payout is held',
  'a payout is held: someone altered it',
  'a payout is held: it was sent before',
  'a payout is held: it expired',
  'a worker waits: payouts are older than its journal',
  'a payout is renewed',
  'a payout is released',
  'a journal is declared complete',
  'a journal forgets expired sends',
  'a payout is held: the journal forgot sends that expired later',
  'an act is used',
  'a pause is kept',
  'a kept pause is ended by an act',
  'an act that ends no pause is refused',
] as const;

export const POLICED_SITUATIONS = [
  'a cap is nearly used up',
  'a payout is released by the policy',
  'the policy lets a payout wait',
  'the policy asks for approvals',
  'the policy refuses a payout',
  'a payout is approved',
  'a payout is rejected by a person',
  'a rejection is removed from Redis',
  'a rejection is taken back',
  'a rejected payout is released',
  'someone approves what he asked for',
] as const;

export const REPLICATED_SITUATIONS = [
  'a failover forgets that a send began',
  'a master is cut off with its host',
  'a process is restarted while replicas are missing',
  'a write is not confirmed',
  'a command is acknowledged',
] as const;

export type Situation =
  | (typeof REPLICATED_SITUATIONS)[number]
  | (typeof SITUATIONS)[number]
  | (typeof SIGNED_SITUATIONS)[number]
  | (typeof POLICED_SITUATIONS)[number];

const HELD_FOR: Readonly<Record<string, Situation>> = {
  wait: 'the policy lets a payout wait',
  approve: 'the policy asks for approvals',
  refuse: 'the policy refuses a payout',
  bad_signature: 'a payout is held: someone altered it',
  sent_before: 'a payout is held: it was sent before',
  expired: 'a payout is held: it expired',
  forgotten: 'a payout is held: the journal forgot sends that expired later',
};

interface Request {
  readonly process: string;
  readonly until: number;
}

export class Situations {
  readonly met = new Set<Situation>();
  readonly #now: () => number;
  readonly #epochs = new Set<number>();
  readonly #beginsSeen = new Map<string, number>();
  readonly #begunBy = new Map<string, string>();
  readonly #beforeWrite = new Set<string>();
  #requests: readonly Request[] = [];
  #begins = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  executed(process: string, name: string, about: string, lease: LeaseView | undefined) {
    const [payoutId = '', attempt = ''] = about.split(' ');
    const send = `${payoutId} ${attempt}`;
    const isHolder = lease?.owner.startsWith(`${process}.`) === true;
    switch (name) {
      case 'readSender':
        this.#beginsSeen.set(process, this.#begins);
        break;
      case 'acquireLease':
        if (this.#begins > (this.#beginsSeen.get(process) ?? this.#begins)) this.meet(SITUATIONS[0]);
        if (isHolder) this.#tookOver(lease.epoch);
        break;
      case 'beginSend':
        if (!isHolder) break;
        this.#begins += 1;
        this.#begunBy.set(send, process);
        this.#beforeWrite.add(process);
        break;
      case 'finishSend':
        if (!isHolder) this.meet('an outcome is recorded by a process that has lost the lease');
        if ((this.#begunBy.get(send) ?? process) !== process)
          this.meet('an outcome is recorded by another process than sent it');
        break;
      case 'revertSend':
        this.#beforeWrite.delete(process);
        this.meet('an attempt is put back');
        break;
      case 'holdPayout':
        this.meet('a payout is held');
        this.meet(HELD_FOR[attempt]);
        break;
      case 'object':
        this.meet('a journal objects');
        break;
    }
  }

  #tookOver(epoch: number) {
    if (this.#epochs.has(epoch)) this.meet('an epoch is given out twice');
    this.#epochs.add(epoch);
    if (this.#isRequestOnItsWay()) this.meet('the lease is taken over while a request is on its way');
  }

  /** @param inFlightMs - how long it may be on its way at the most */
  written(process: string, inFlightMs: number) {
    this.#beforeWrite.delete(process);
    this.#requests = [...this.#requests, { process, until: this.#now() + inFlightMs }];
  }

  arrived(process: string) {
    this.#requests = this.#requests.filter((request) => request.process !== process);
  }

  journaled(process: string, lease: LeaseView | undefined) {
    if (lease?.owner.startsWith(`${process}.`) !== true)
      this.meet('a journal entry is written by a process that has lost the lease');
  }

  stopped(process: string) {
    if (this.#beforeWrite.has(process)) this.meet('a process is stopped between begin and write');
  }

  killed(process: string) {
    if (this.#beforeWrite.delete(process)) this.meet('a process is killed between begin and write');
    if (this.#isRequestOnItsWay(process)) this.meet('a process is killed while its request is on its way');
  }

  wallClockJumped(process: string) {
    if (this.#beforeWrite.has(process)) this.meet('a wall clock jumps between begin and write');
  }

  rolledBack() {
    if (this.met.has('Redis comes back older')) this.meet('Redis comes back older twice');
    this.meet('Redis comes back older');
    if (this.#isRequestOnItsWay()) this.meet('Redis comes back older while a request is on its way');
  }

  senderLost() {
    if (this.#beforeWrite.size > 0 || this.#isRequestOnItsWay())
      this.meet('the sender key is lost while a send is in progress');
  }

  meet(situation: Situation | undefined) {
    if (situation !== undefined) this.met.add(situation);
  }

  #isRequestOnItsWay(of?: string) {
    return this.#requests.some(({ process, until }) => until > this.#now() && (of === undefined || process === of));
  }
}
