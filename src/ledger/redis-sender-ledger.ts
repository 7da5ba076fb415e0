import { RedisUnavailableError } from '../errors.js';
import { findForgottenSends, type ForgottenSend } from './adopt-ledger.js';
import { ask, pipelined, readLedger, type LedgerConnection } from './ledger-connection.js';
import { toLine, type Payout } from './payout.js';
import { readPayout } from './read-payouts.js';
import { readRefusal } from './refusal.js';
import type {
  BeginResult,
  BeginSend,
  BreakerRule,
  FinishResult,
  Lease,
  LeaseView,
  SendAttempt,
  SenderLedger,
  SenderView,
  SendResult,
} from './sender-ledger.js';

/**
 * How a beginning is known to be on disk before the request is written.
 *
 * - `reply`: Redis answers only after it (`appendfsync always`), or the operator accepted a Redis that may forget.
 * - `waitaof`: the server is asked with WAITAOF.
 */
export type Durability = 'reply' | 'waitaof';

const WAITAOF_TIMEOUT_MS = 1_000;

/** The sender's view of the ledger, in Redis. Its connection must not send a command twice: `connectRedis(url, 'sender')`. */
export class RedisSenderLedger implements SenderLedger {
  readonly #connection: LedgerConnection;
  readonly #durability: Durability;

  constructor(connection: LedgerConnection, durability: Durability) {
    this.#connection = connection;
    this.#durability = durability;
  }

  async readSender(): Promise<SenderView> {
    const { redis, keys } = this.#connection;
    const ledger = await readLedger(this.#connection);
    const sender = await ask(redis.hgetall(keys.sender));
    return {
      ledgerId: ledger.ledgerId,
      pausedReason: ledger.pausedReason,
      lease: readLease(sender),
      sends: Number(sender['sends'] ?? 0),
      unanswered: (sender['unanswered'] ?? '') !== '',
    };
  }

  async acquireLease(owner: string, seen: LeaseView | undefined): Promise<number | undefined> {
    const view = seen === undefined ? ['', '', '', ''] : [seen.owner, seen.epoch, seen.beat, seen.released ? '1' : '0'];
    const epoch = Number(await this.#connection.run('acquire-lease', [owner, ...view]));
    return epoch === 0 ? undefined : epoch;
  }

  async beatLease({ owner, epoch }: Lease): Promise<boolean> {
    return (await this.#connection.run('beat-lease', [owner, epoch])) === 1;
  }

  async releaseLease({ owner, epoch }: Lease): Promise<void> {
    await this.#connection.run('release-lease', [owner, epoch]);
  }

  async readPayout(payoutId: string): Promise<Payout | undefined> {
    return readPayout(this.#connection, payoutId);
  }

  async findForgottenSends<Send extends SendAttempt>(sends: readonly Send[]): Promise<readonly ForgottenSend<Send>[]> {
    return findForgottenSends(this.#connection, sends);
  }

  async beginSend({ lease, ledgerId, sends, payoutId, attempt }: BeginSend): Promise<BeginResult> {
    const { clock, run } = this.#connection;
    const args = [clock.wallNow(), ledgerId, lease.owner, lease.epoch, sends, payoutId, attempt];
    const reply = await run('begin-send', args);
    const refusal = readRefusal(reply);
    if (refusal !== undefined) return refusal;
    await this.#waitUntilDurable();
    return { kind: 'begun', sends: Number(reply) };
  }

  async #waitUntilDurable(): Promise<void> {
    if (this.#durability === 'reply') return;
    // The command before it names a key, so that a cluster asks the server that the write went to, on the same connection.
    const replies = await pipelined(this.#connection, (pipeline) =>
      pipeline.exists(this.#connection.keys.ledger).call('WAITAOF', 1, 0, WAITAOF_TIMEOUT_MS),
    );
    const [syncedHere] = replies[1] as [number, number];
    if (syncedHere < 1) throw new RedisUnavailableError(`Redis did not sync to disk within ${WAITAOF_TIMEOUT_MS} ms`);
  }

  async revertSend({ payoutId, attempt, epoch }: SendAttempt, reason: string): Promise<void> {
    const { clock, run } = this.#connection;
    await run('revert-send', [clock.wallNow(), payoutId, attempt, epoch, toLine(reason)]);
  }

  async finishSend(attempt: SendAttempt, result: SendResult, rule: BreakerRule): Promise<FinishResult> {
    const reply = await this.#connection.run('finish-send', [
      this.#connection.clock.wallNow(),
      attempt.payoutId,
      attempt.attempt,
      attempt.epoch,
      ...describeResult(result),
      rule.maxRejectionsInARow,
      rule.maxUnknownsInARow,
      toLine(rule.blockedReason ?? ''),
    ]);
    const [recorded, pausedReason] = reply as [number, string];
    return recorded === 1 && pausedReason !== '' ? { recorded: true, pausedReason } : { recorded: recorded === 1 };
  }

  async recoverSends({ owner, epoch }: Lease, reason: string): Promise<readonly string[] | undefined> {
    const { clock, run } = this.#connection;
    const reply = await run('recover-sends', [clock.wallNow(), owner, epoch, toLine(reason)]);
    return readRefusal(reply) === undefined ? (reply as unknown[]).slice(1).map(String) : undefined;
  }
}

/** The state, txhash and message of a result, as finish-send.lua takes them. */
function describeResult(result: SendResult): [to: string, txhash: string, message: string] {
  switch (result.kind) {
    case 'accepted':
      return ['in_progress', result.txhash, ''];
    case 'rejected':
      return ['rejected', '', toLine(result.message)];
    case 'unknown':
      return ['unknown', '', toLine(result.reason)];
  }
}

/** The lease in the fields of the `sender` hash. */
export function readLease(sender: Readonly<Record<string, string>>): LeaseView | undefined {
  if (sender['epoch'] === undefined) return undefined;
  return {
    owner: sender['owner'] ?? '',
    epoch: Number(sender['epoch']),
    beat: Number(sender['beat']),
    released: sender['released'] === '1',
  };
}
