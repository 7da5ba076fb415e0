import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { findBroken, smallestGapMs } from './account.js';
import { NOT_SHOWN, seconds, type Cell } from './cell.js';
import { now, startGateway, type LateGateway } from './gateway.js';
import type { Host, KernelSettings } from './network.js';
import type { Rig } from './rig.js';
import { inScene, keepStating, untilHeld } from './scene.js';

/** The gateway is silent from an exact step of a send on. All settings are the defaults. */
export interface Silence {
  readonly why: keyof typeof WHY;
  /** `response` is between the gateway's reading of the request and its response. */
  readonly step: 'begin' | 'first-byte' | 'response';
  readonly forSeconds: number;
  /** Of the gateway, behind one port. */
  readonly processes: number;
  /** Of the sender's host. @defaultValue the machine's */
  readonly kernel?: KernelSettings;
}

const WHY = {
  /** All its processes stand still, as on a paused machine, and read later what its kernel has meanwhile received. */
  frozen: ({ gateway }: { gateway: LateGateway }) => ({
    command: gateway.freezeCommand,
    end: gateway.goOn,
  }),
  /** So do those that have connections of the sender; the others answer. */
  'partly frozen': ({ gateway, sender }: { gateway: LateGateway; sender: Host }) => ({
    command: gateway.freezeServing(sender.address),
    end: gateway.goOn,
  }),
  /** The sender still reaches Redis. Its kernel waits longer for each try. */
  'cut off': ({ host }: { host: Host }) => ({ command: host.cutCommand('path'), end: host.reconnect }),
} as const;

const STEPS = ['begin', 'first-byte', 'response'] as const;
const FROZEN_SECONDS = [1, 5, 20, 43, 61, 91, 95, 120, 200];
const CUT_SECONDS = [5, 20, 43, 58, 75, 95, 100, 120];
/** It keeps what a process has closed, and not reset, for minutes, and tries at moments when the sender sends again. */
const PATIENT_KERNEL = { tcp_orphan_retries: 12 };
/**
 * It is outside of the promises what one process of several reads after the time that its request may take, while the
 * others answer (docs/guarantees.md, A1): so these end before that time.
 */
const PARTLY_FROZEN_SECONDS = [5, 20, 43, 58];

export const SILENCES: readonly Silence[] = [
  ...[1, 4].flatMap((processes) =>
    STEPS.flatMap((step) =>
      FROZEN_SECONDS.map((forSeconds) => ({ why: 'frozen' as const, step, forSeconds, processes })),
    ),
  ),
  ...PARTLY_FROZEN_SECONDS.map((forSeconds) => ({
    ...{ why: 'partly frozen' as const, step: 'begin' as const, forSeconds, processes: 4 },
  })),
  ...STEPS.flatMap((step) =>
    CUT_SECONDS.map((forSeconds) => ({ why: 'cut off' as const, step, forSeconds, processes: 1 })),
  ),
  ...[75, 95, 120].map((forSeconds) => ({
    ...{ why: 'cut off' as const, step: 'begin' as const, forSeconds, processes: 1, kernel: PATIENT_KERNEL },
  })),
];

/** For each second in which a kernel may still try. */
const WAITING = 120;
const COMES_TO_STEP_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 200;

/** Several processes wake up in any order: one may be asked before another has read what it has. */
const ASKS_AGAIN_AFTER_MS = 5_000;

const SENDS_AFTER = 4;
/** The longest pause between two tries of a kernel to deliver what it holds, within these silences. */
const TRIES_AGAIN_WITHIN_MS = 110_000;
const SENDS_AGAIN_WITHIN_MS = 240_000;

export function silentCell(silence: Silence): Cell {
  const { why, step, forSeconds, processes, kernel } = silence;
  const who = processes === 1 ? 'gateway' : `gateway of ${processes} processes`;
  const how = kernel === undefined ? '' : ', patient kernel';
  return { name: `${who} ${why} at ${step} for ${forSeconds} s${how}`, run: async (rig) => runSilent(rig, silence) };
}

async function runSilent({ stage }: Rig, { why, step, forSeconds, processes, kernel }: Silence) {
  const host = await stage.network.openHost('gateway');
  const gateway = await startGateway(stage, { processes, host });
  try {
    return await inScene(stage, gateway, async ({ account, openHost, startWorker }) => {
      const { platformId } = account;
      const sender = await openHost('healthy', kernel);
      const { command, end } = WHY[why]({ gateway, host, sender });
      const worker = await startWorker(sender, step === 'response' ? {} : { atStep: { step, command } });
      await account.enqueue(2);
      await until('it sends', () => account.arrivals().length === 2);
      if (step === 'response') gateway.beforeNextResponse(platformId, command);
      else worker.arm();
      await account.enqueue(WAITING);
      const readSilentAt = () => (step === 'response' ? gateway.steppedAt(platformId) : worker.steppedAt());
      await until('the sender comes to the step', () => readSilentAt() !== undefined, COMES_TO_STEP_WITHIN_MS);
      const silentAt = readSilentAt() ?? 0;
      const operator = keepStating(account, silentAt, processes > 1 ? ASKS_AGAIN_AFTER_MS : undefined);
      const heldBytes = await untilHeld(sender, gateway.port, step === 'response' || why !== 'cut off');
      const readAtOnce = account.arrivals().length - 2;
      await delay(Math.max(0, silentAt + forSeconds * 1_000 - now()));
      const endedAt = now();
      await end();
      const readSince = () => account.arrivals().filter(({ readAt }) => readAt > endedAt);
      while (readSince().length < SENDS_AFTER && now() < endedAt + SENDS_AGAIN_WITHIN_MS) await delay(LOOK_EVERY_MS);
      const askedSince = () => gateway.askedAt(platformId).filter((at) => at > endedAt);
      const isHeld = async () => (await sender.unsentTo(gateway.port)) > 0;
      while ((await isHeld()) && now() < endedAt + TRIES_AGAIN_WITHIN_MS) await delay(LOOK_EVERY_MS);
      await operator.end();
      const [arrivals, after] = [account.arrivals(), readSince()];
      const isOnItsWay = heldBytes !== undefined && readAtOnce === (step === 'response' ? 1 : 0);
      return {
        broken: [
          ...(isOnItsWay
            ? []
            : [`${NOT_SHOWN}: ${readAtOnce} read at once, the sender's kernel holds ${heldBytes ?? 0} bytes`]),
          ...(after.length < SENDS_AFTER ? [`${NOT_SHOWN}: ${after.length} sends since it answers again`] : []),
          ...findBroken(arrivals, processes > 1 ? askedSince() : []),
        ],
        figures: [
          `then read at ${after.map(({ readAt }) => seconds(readAt - endedAt)).join(', ')}`,
          `stated ${operator.stated.join(', ') || 'nothing'}`,
          `smallest gap ${smallestGapMs(arrivals).toFixed(0)} ms of ${arrivals.length}`,
        ].join('; '),
      };
    });
  } finally {
    await gateway.close();
    await host.close();
  }
}
