import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { findBroken, smallestGapMs, type LateAccount } from './account.js';
import { NOT_SHOWN, seconds, type Cell } from './cell.js';
import { now } from './gateway.js';
import type { Cut, Host, KernelSettings } from './network.js';
import { inScene, keepStating, untilHeld } from './scene.js';
import type { Rig } from './rig.js';
import type { LateWorker } from './worker.js';

/**
 * Two hosts. The one that sends loses its network at an exact step of a send, and has it again later. All settings of the
 * workers are the defaults.
 */
export interface CutOff {
  /** `response` is between the gateway's reading of the request and its response. */
  readonly step: 'begin' | 'entry' | 'first-byte' | 'response';
  /** What becomes of the sender once its request is in its kernel. A stopped one goes on after the network is back. */
  readonly fate: 'alive' | 'killed' | 'stopped';
  readonly cut: Cut;
  readonly cutSeconds: number;
  /** Of the host that is cut off. @defaultValue the machine's */
  readonly kernel?: KernelSettings;
}

const STEPS = ['begin', 'entry', 'first-byte', 'response'] as const;
const FATES = ['alive', 'killed', 'stopped'] as const;
const CUT_SECONDS = [5, 20, 43, 46, 58, 75, 120];

/** It gives a request up after half a minute, and the other host waits for that and the network: about a minute. */
const IMPATIENT_KERNEL = { tcp_retries2: 6, tcp_orphan_retries: 6 };

const over = (cut: Cut, steps: readonly CutOff['step'][], kernel?: KernelSettings): readonly CutOff[] =>
  steps.flatMap((step) =>
    FATES.flatMap((fate) =>
      CUT_SECONDS.map((cutSeconds) => ({ step, fate, cut, cutSeconds, ...(kernel && { kernel }) })),
    ),
  );

export const CUT_OFFS = over('cable', STEPS);

/** In these the other host takes over while the operator looks, within a few minutes. */
export const IMPATIENT_CUT_OFFS = over('path', ['begin'], IMPATIENT_KERNEL);

/** Enough for the other host to send in each second. */
const WAITING = 200;
/** The payout of the cut goes before them, also when it is queued again. */
const LATER = 5;

const COMES_TO_STEP_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 500;
const LOOK_WHILE_CUT_EVERY_MS = 4_000;

/** A cell has shown its case after so many sends that no kernel can disturb any more. */
const SENDS_AFTER = 3;
const SENDS_AGAIN_WITHIN_MS = 1_300_000;

/** Or, if the other host waits longer than one wants to, so long after the last time that a kernel could disturb. */
const WAITS_AFTER_MS = 5_000;

/** @param isPatient - whether to wait until the other host sends, with a kernel as it is for a quarter of an hour */
export function cutOffCell(cutOff: CutOff, isPatient: boolean): Cell {
  const { step, fate, cut, cutSeconds, kernel } = cutOff;
  const name = `${cut} cut at ${step} for ${cutSeconds} s, sender ${fate}${kernel ? ', impatient kernel' : ''}`;
  const run = async ({ stage, gateway }: Rig) =>
    inScene(stage, gateway, async ({ account, openHost, startWorker }) => {
      const host = await openHost('cut-off', cutOff.kernel);
      const other = await openHost('other');
      const command = host.cutCommand(cut);
      const sender = await startWorker(host, step === 'response' ? {} : { atStep: { step, command } });
      await account.enqueue(2);
      await until('it sends', () => account.arrivals().length === 2);
      const otherWorker = await startWorker(other);
      const readCutAt = () => (step === 'response' ? gateway.steppedAt(account.platformId) : sender.steppedAt());
      if (step === 'response') gateway.beforeNextResponse(account.platformId, command);
      else sender.arm();
      const [payoutId = ''] = await account.enqueue(1);
      await account.enqueue(WAITING, LATER);
      await until('the sender comes to the step', () => readCutAt() !== undefined, COMES_TO_STEP_WITHIN_MS);
      const cutAt = readCutAt() ?? 0;
      return watch({ account, host, sender, otherWorker, cutOff, payoutId, cutAt, isPatient });
    });
  return { name, run };
}

interface CutScene {
  readonly account: LateAccount;
  /** The one that is cut off, with its worker. */
  readonly host: Host;
  readonly sender: LateWorker;
  readonly otherWorker: LateWorker;
  readonly cutOff: CutOff;
  /** Of the request that is under way. */
  readonly payoutId: string;
  readonly cutAt: number;
  readonly isPatient: boolean;
}

async function watch(scene: CutScene) {
  const { account, host, sender, otherWorker, cutOff, cutAt, isPatient } = scene;
  const { fate, step, cutSeconds } = cutOff;
  const broken: string[] = [];
  const heldBytes = await untilHeld(host, account.gateway.port, step === 'response');
  if (heldBytes === undefined) broken.push(`${NOT_SHOWN}: the request is not in the kernel of its host`);
  if (fate !== 'alive') sender.kill(fate === 'killed' ? 'SIGKILL' : 'SIGSTOP');
  const operator = keepStating(account, cutAt);
  let drainedAt: number | undefined;
  let isWaiting = false;
  try {
    const isHeld = async () => (await host.unsentTo(account.gateway.port)) > 0;
    for (const endsAt = cutAt + cutSeconds * 1_000; now() < endsAt;) {
      await delay(Math.min(LOOK_WHILE_CUT_EVERY_MS, Math.max(0, endsAt - now())));
      if (drainedAt === undefined && !(await isHeld())) drainedAt = now();
    }
    await host.reconnect();
    const reconnectedAt = now();
    if (fate === 'stopped') {
      await delay(LOOK_EVERY_MS);
      sender.kill('SIGCONT');
    }
    const deadline = now() + SENDS_AGAIN_WITHIN_MS;
    let sendsAfter = 0;
    while (now() < deadline && sendsAfter < SENDS_AFTER) {
      await delay(LOOK_EVERY_MS);
      if (drainedAt === undefined && (await isHeld())) continue;
      const since = Math.max(reconnectedAt, (drainedAt ??= now()));
      sendsAfter = account.arrivals().filter(({ readAt }) => readAt > since).length;
      isWaiting = !isPatient && now() > since + WAITS_AFTER_MS && otherWorker.waitsUntil() > now() + WAITS_AFTER_MS;
      if (isWaiting) break;
    }
    if (sendsAfter < SENDS_AFTER && !isWaiting)
      broken.push(`${NOT_SHOWN}: ${sendsAfter} sends since its kernel holds nothing`);
  } finally {
    await operator.end();
  }
  return {
    broken: [...broken, ...findBroken(account.arrivals())],
    figures: [
      `its kernel held ${heldBytes ?? 0} bytes until ${seconds(drainedAt && drainedAt - cutAt)}`,
      ...describeArrivals(scene),
      ...(isWaiting ? [`the other waits until ${seconds(otherWorker.waitsUntil() - cutAt)}`] : []),
      `stated ${operator.stated.join(', ') || 'nothing'}`,
    ].join('; '),
  };
}

function describeArrivals({ account, host, payoutId, cutAt }: CutScene) {
  const arrivals = account.arrivals();
  const isOfSender = ({ from }: { from: string }) => from.endsWith(host.address);
  const other = arrivals.find((arrival) => !isOfSender(arrival));
  const paid = account
    .arrivalsOf(payoutId)
    .map((arrival) => `at ${seconds(arrival.readAt - cutAt)} by ${isOfSender(arrival) ? 'the sender' : 'the other'}`);
  return [
    `paid ${paid.join(' and ') || 'never'}`,
    `the other sends from ${seconds(other && other.readAt - cutAt)}`,
    `smallest gap ${smallestGapMs(arrivals).toFixed(0)} ms of ${arrivals.length}`,
  ];
}
