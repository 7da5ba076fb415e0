import { setTimeout as delay } from 'node:timers/promises';
import type { DelayRange, FaultRule, Sandbox } from 'payout-queue/sandbox';
import type { SamplePayout } from '../sample-payouts.js';
import type { Client, Engine } from './engine.js';
import type { Program } from './program.js';
import { copyStore } from './store.js';

/** What a fault has at hand. */
export interface Scene {
  readonly count: number;
  readonly engine: Engine;
  readonly client: Client;
  readonly sandbox: Sandbox;
  readonly payouts: readonly SamplePayout[];
  /** The worker that all began with. */
  readonly worker: Program;
  /** Another worker, or one in the place of a former one of that name. */
  readonly startWorker: (name?: string) => Promise<Program>;
  /** Until this share of the withdrawals is at the gateway. */
  readonly arrived: (share: number) => Promise<void>;
  /** Until the gateway has read so many withdrawals more, which may arrive later. */
  readonly written: (more: number) => Promise<void>;
}

export interface Fault {
  readonly name: string;
  /** Whether the short form has it: it takes seconds. */
  readonly quick?: boolean;
  readonly latencyBeforeMs?: DelayRange;
  readonly latencyAfterMs?: number | DelayRange;
  readonly rules?: (count: number) => FaultRule[];
  play?(scene: Scene): Promise<void>;
}

/** Whom a forged payout would pay. */
export const THIEF = '0x000000000000000000000000000000000000dEaD';

/** Longer than BullMQ takes to miss a worker: up to 60 s. */
const PAUSE_MS = 75_000;
/** So long that a worker killed meanwhile has not had the response. */
const SLOW_RESPONSE_MS = 250;
const LATE_MS = 2_500;

export const FAULTS: readonly Fault[] = [
  {
    name: 'jitter on the way',
    quick: true,
    latencyBeforeMs: { min: 0, max: 300 },
    latencyAfterMs: { min: 20, max: 80 },
  },
  {
    name: 'lost responses',
    quick: true,
    rules: (count) => [{ kind: 'drop-after', every: Math.ceil(count / 4), times: 3 }],
  },
  {
    name: 'killed after the write',
    latencyAfterMs: SLOW_RESPONSE_MS,
    async play(scene) {
      await scene.arrived(1 / 3);
      await scene.worker.kill();
      await scene.startWorker();
    },
  },
  {
    name: 'paused before the write',
    async play(scene) {
      await scene.arrived(1 / 3);
      await scene.startWorker('second');
      scene.worker.standStillAtNextCall();
      await delay(PAUSE_MS);
      scene.worker.goOn();
    },
  },
  {
    name: 'an older copy restored',
    async play({ engine: { store }, worker, startWorker, arrived }) {
      await arrived(1 / 3);
      await worker.end();
      await store.stop();
      const copy = await copyStore(store);
      await store.start();
      const next = await startWorker();
      await arrived(2 / 3);
      await next.end();
      await store.stop();
      await copy.restore();
      await store.start();
      await startWorker();
    },
  },
  {
    name: 'taken over, a request on its way',
    async play({ sandbox, worker, startWorker, arrived, written }) {
      await arrived(1 / 3);
      sandbox.addFaults([{ kind: 'latency-before', delayMs: LATE_MS, times: 1 }]);
      await written(1);
      await worker.kill();
      await startWorker();
    },
  },
  {
    name: 'the store written to',
    quick: true,
    async play({ client, payouts, arrived }) {
      await arrived(1 / 3);
      const last = payouts.at(-1);
      if (last !== undefined) await client.forge(last, THIEF);
    },
  },
];
