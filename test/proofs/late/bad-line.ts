import { setTimeout as delay } from 'node:timers/promises';
import { findBroken, smallestGapMs } from './account.js';
import { NOT_SHOWN, seconds, type Cell } from './cell.js';
import { now } from './gateway.js';
import type { Rig } from './rig.js';
import { inScene, keepStating } from './scene.js';
import { REDIS_PORT } from './stage.js';
import type { BadLine } from './wire.js';

/** Two hosts that compete for an account, each behind a bad line to Redis and the gateway. All settings are the defaults. */
export const BAD_LINES: Readonly<Record<string, BadLine>> = {
  'that loses 30 %': { loss: 0.3, minDelayMs: 5, maxDelayMs: 10 },
  // There and back: more than twice of it, for TCP and TLS, would exceed the limit of a connection. Redis has a good line.
  'with a delay of 3 s': { loss: 0, minDelayMs: 1_500, maxDelayMs: 1_500, sparedPort: REDIS_PORT },
  'that reorders': { loss: 0.02, minDelayMs: 1, maxDelayMs: 250 },
};

export type BadLineOf = Readonly<{ line: string; number: number; payouts: number; withinMs: number }>;

const LOOK_EVERY_MS = 500;

export function badLineCell(given: BadLineOf): Cell {
  const { line, number, payouts } = given;
  return { name: `${payouts} payouts over a line ${line}, #${number}`, run: async (rig) => runBadLine(rig, given) };
}

async function runBadLine({ stage, gateway }: Rig, { line, payouts, withinMs }: BadLineOf) {
  return inScene(stage, gateway, async ({ account, openHostBehind, startWorker }) => {
    const badLine = BAD_LINES[line];
    if (badLine === undefined) throw new Error(`no such line: ${line}`);
    const [one, other] = [await openHostBehind(badLine, 'one'), await openHostBehind(badLine, 'other')];
    await Promise.all([startWorker(one), startWorker(other)]);
    const startedAt = now();
    await account.enqueue(payouts);
    const operator = keepStating(account, startedAt);
    const countCompleted = async () => (await account.producer.stats()).completed;
    while ((await countCompleted()) < payouts && now() < startedAt + withinMs) await delay(LOOK_EVERY_MS);
    await operator.end();
    const [completed, arrivals] = [await countCompleted(), account.arrivals()];
    const byOther = arrivals.filter(({ from }) => from.endsWith(other.address)).length;
    return {
      broken: [
        ...(completed < payouts ? [`${NOT_SHOWN}: only ${completed} completed within ${seconds(withinMs)}`] : []),
        ...findBroken(arrivals),
      ],
      figures: [
        `completed in ${seconds(now() - startedAt)}`,
        `${byOther} of ${arrivals.length} sent by the other`,
        `stated ${operator.stated.join(', ') || 'nothing'}`,
        `smallest gap ${smallestGapMs(arrivals).toFixed(0)} ms`,
      ].join('; '),
    };
  });
}
