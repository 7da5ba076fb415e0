import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from '../src/base/clock.js';
import { connectRedis } from 'payout-queue';
import { connectLedger } from '../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../src/ledger/redis-sender-ledger.js';
import { closeRedis } from '../src/base/redis.js';
import { sampleAmount, type SamplePayout, sampleTxhash } from './sample-payouts.js';

/** The breaker must not interfere. */
const NO_BREAKER = { maxRejectionsInARow: 1_000, maxUnknownsInARow: 1_000 };

/** Payouts that are written to Redis at the same time. */
const STEP = 500;

/** An account's ledger on a connection of its own. */
export function openLedger(redisUrl: string, platformId: number) {
  const redis = connectRedis(redisUrl, 'queue');
  const connection = connectLedger(redis, platformId, systemClock);
  return { ledger: new PayoutLedger(connection), connection, close: async () => closeRedis(redis) };
}

/** The gateway that the account is bound to. */
export const AUDIENCE = 'bench';

const JOURNAL = { journalId: 'bench', host: 'bench', dir: '/bench', sends: 0, token: '', at: 0 };

/** An account's ledger that holds the lease: payouts can be brought into any state without a gateway. */
export async function holdLedger(redisUrl: string, platformId: number) {
  const { ledger, connection, close } = openLedger(redisUrl, platformId);
  const senderLedger = new RedisSenderLedger(connection, 'reply');
  const { ledgerId } = await senderLedger.readSender();
  const epoch = await senderLedger.acquireLease('bench', await senderLedger.readSender(), JOURNAL, 0);
  if (epoch === undefined) throw new Error('Another holds the lease');
  return { ledger, senderLedger, ledgerId, lease: { owner: 'bench', epoch }, sendCount: 0, last: '', close };
}

export type HeldAccount = Awaited<ReturnType<typeof holdLedger>>;

export interface SentPayout extends SamplePayout {
  readonly gatewayId: string;
}

/**
 * Payouts that the gateway has accepted and whose status is polled.
 * @returns the payouts with their gatewayId
 */
export async function putInProgress(account: HeldAccount, payouts: readonly SamplePayout[]): Promise<SentPayout[]> {
  const sent = payouts.map((payout) => ({ ...payout, gatewayId: sampleTxhash() }));
  for (let start = 0; start < sent.length; start += STEP) {
    const step = sent.slice(start, start + STEP);
    await account.ledger.enqueue(payouts.slice(start, start + STEP));
    const sends: Awaited<ReturnType<typeof beginInTurn>>[] = [];
    for (const payout of step) sends.push(await beginInTurn(account, payout));
    await Promise.all(sends.map(({ recorded }) => recorded));
    for (const state of ['queued', 'in_progress'] as const) {
      await account.ledger.clearOutbox(
        state,
        step.map(({ payoutId }) => payoutId),
      );
    }
  }
  return sent;
}

/** Completed payouts, with all their events. */
export async function completePayouts(account: HeldAccount, payouts: readonly SamplePayout[]): Promise<void> {
  const sent = await putInProgress(account, payouts);
  for (let start = 0; start < sent.length; start += STEP) {
    const changes = sent
      .slice(start, start + STEP)
      .map(async ({ payoutId }) =>
        account.ledger.change({ payoutId, from: 'in_progress', to: 'completed', fee: sampleAmount() }),
      );
    await Promise.all(changes);
  }
}

/**
 * Sends a payout without waiting for Redis: it runs what one connection asks for in order, so that a begin meets the end of
 * the send before.
 * @returns `recorded`: resolves once the outcome is
 */
async function beginInTurn(account: HeldAccount, { payoutId, gatewayId }: SentPayout) {
  const { senderLedger, lease, ledgerId, sendCount, last } = account;
  // As long as a real token, and different for each send.
  const token = String(sendCount).padStart(8, '0');
  const attempt = { payoutId, attempt: 1, token };
  const line = { lease, heartbeat: 0, ledgerId, sendCount, last };
  Object.assign(account, { sendCount: sendCount + 1, last: token });
  const given = { acts: 0, journal: JOURNAL, inFlightMs: 0, decisions: 0, audience: AUDIENCE };
  const begun = senderLedger.beginSend({ ...attempt, ...line, ...given });
  // The command is written in a microtask.
  await nextTurn();
  const finished = senderLedger.finishSend(attempt, { kind: 'accepted', gatewayId: gatewayId } as const, NO_BREAKER, 0);
  const recorded = Promise.all([begun, finished]).then(([begin, finish]) => {
    insist(begin.kind === 'begun', begin);
    insist(finish.recorded, finish);
  });
  return { recorded };
}

function insist(isRight: boolean, result: unknown): void {
  if (!isRight) throw new Error(`The ledger said ${JSON.stringify(result)}`);
}
