import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { findBroken, smallestGapMs } from './account.js';
import { seconds, type Cell } from './cell.js';
import { now, startGateway } from './gateway.js';
import { inScene, keepStating } from './scene.js';
import type { Rig } from './rig.js';

/**
 * The gateway stands still at an exact step of a send, as a paused machine does, and reads later what its kernel has
 * meanwhile received. All settings are the defaults.
 */
export interface Frozen {
  /** `response` is between the gateway's reading of the request and its response. */
  readonly step: 'begin' | 'first-byte' | 'response';
  readonly frozenSeconds: number;
  /** Of the gateway, behind one port. */
  readonly processes: number;
  /** All of them, or only those that have connections of the sender. */
  readonly whole: boolean;
}

const STEPS = ['begin', 'first-byte', 'response'] as const;
const FROZEN_SECONDS = [1, 5, 20, 43, 61, 91, 95, 120, 200];

export const FROZEN: readonly Frozen[] = [1, 4].flatMap((processes) =>
  STEPS.flatMap((step) => FROZEN_SECONDS.map((frozenSeconds) => ({ step, frozenSeconds, processes, whole: true }))),
);

/**
 * One process of four stands still, and the others answer. It is outside of the promises what this one reads after the
 * time that its request may take (docs/guarantees.md, A1): so these end before that time.
 */
export const PARTLY_FROZEN: readonly Frozen[] = [5, 20, 43, 58].map((frozenSeconds) => ({
  ...{ step: 'begin', frozenSeconds, processes: 4, whole: false },
}));

const WAITING = 12;
const COMES_TO_STEP_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 200;

/** Several processes wake up in any order: one may be asked before another has read what it has. */
const ASKS_AGAIN_AFTER_MS = 5_000;

const SENDS_AFTER = 4;
const SENDS_AGAIN_WITHIN_MS = 240_000;

export function frozenCell(frozen: Frozen): Cell {
  const { step, frozenSeconds, processes, whole } = frozen;
  const what = `gateway of ${processes}${whole ? '' : ', one'} frozen`;
  return { name: `${what} at ${step} for ${frozenSeconds} s`, run: async (rig) => runFrozen(rig, frozen) };
}

async function runFrozen({ stage }: Rig, { step, frozenSeconds, processes, whole }: Frozen) {
  const gateway = await startGateway(stage, { processes });
  try {
    return await inScene(stage, gateway, async ({ account, openHost, startWorker }) => {
      const host = await openHost('healthy');
      const command = whole ? gateway.freezeCommand : gateway.freezeServing(host.address);
      const sender = await startWorker(host, step === 'response' ? {} : { atStep: { step, command } });
      await account.enqueue(2);
      await until('it sends', () => account.arrivals().length === 2);
      const { platformId } = account;
      if (step === 'response') gateway.beforeNextResponse(platformId, command);
      else sender.arm();
      const [payoutId = ''] = await account.enqueue(1);
      await account.enqueue(WAITING, 5);
      const readFrozenAt = () => (step === 'response' ? gateway.steppedAt(platformId) : sender.steppedAt());
      await until('the sender comes to the step', () => readFrozenAt() !== undefined, COMES_TO_STEP_WITHIN_MS);
      const frozenAt = readFrozenAt() ?? 0;
      const operator = keepStating(account, frozenAt, processes > 1 ? ASKS_AGAIN_AFTER_MS : undefined);
      await delay(Math.max(0, frozenAt + frozenSeconds * 1_000 - now()));
      const wentOnAt = now();
      gateway.goOn();
      const readSince = () => account.arrivals().filter(({ readAt }) => readAt > wentOnAt);
      const deadline = now() + SENDS_AGAIN_WITHIN_MS;
      while (readSince().length < SENDS_AFTER && now() < deadline) await delay(LOOK_EVERY_MS);
      await operator.end();
      const [arrivals, after] = [account.arrivals(), readSince()];
      const isLate = step === 'response' || after.some(({ addressTo }) => addressTo === account.addressOf(payoutId));
      return {
        broken: [
          ...(isLate ? [] : ['NOT SHOWN: the request was not in the kernel of the gateway']),
          ...(after.length < SENDS_AFTER ? [`NOT SHOWN: ${after.length} sends since it goes on`] : []),
          ...findBroken(arrivals),
        ],
        figures: [
          `since it goes on, read at ${after.map(({ readAt }) => seconds(readAt - wentOnAt)).join(', ')}`,
          `stated ${operator.stated.join(', ') || 'nothing'}`,
          `smallest gap ${smallestGapMs(arrivals).toFixed(0)} ms of ${arrivals.length}`,
        ].join('; '),
      };
    });
  } finally {
    await gateway.close();
  }
}
