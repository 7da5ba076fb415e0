import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { now } from './gateway.js';
import type { Host, KernelSettings } from './network.js';
import { inScene } from './scene.js';
import type { Rig } from './rig.js';
import type { LateWorker } from './worker.js';

/**
 * How long an account waits until another host sends: from what happens to the sender to the other's first request at
 * the gateway. All settings of the workers are the defaults, and each host has a journal of its own.
 */
export interface TakeOver {
  readonly event: 'ends in good order' | 'is killed' | 'is cut off' | 'is stopped';
  /** Whether a request has no response yet. It has reached the gateway, unless the host is cut off. */
  readonly isDuringRequest: boolean;
  /** Of the sender's host. */
  readonly kernel: KernelSettings;
}

/** The second ones give a request up sooner (docs/deploy.md). */
export const KERNELS: readonly KernelSettings[] = [{}, { tcp_retries2: 5, tcp_orphan_retries: 3 }];

export const TAKE_OVERS: readonly TakeOver[] = (
  ['ends in good order', 'is killed', 'is cut off', 'is stopped'] as const
).flatMap((event) =>
  [false, true].flatMap((isDuringRequest) => KERNELS.map((kernel) => ({ event, isDuringRequest, kernel }))),
);

const WAITING = 30;
/** A pause between two sends, well before the next. */
const BETWEEN_SENDS_MS = 400;
const TAKES_OVER_WITHIN_MS = 1_300_000;
const LOOK_EVERY_MS = 50;

/** @returns ms, or undefined if the other did not send within {@link TAKES_OVER_WITHIN_MS} */
export async function measureTakeOver({ stage, gateway }: Rig, { event, isDuringRequest, kernel }: TakeOver) {
  return inScene(stage, gateway, async ({ account, openHost, startWorker }) => {
    const host = await openHost('sender', kernel);
    const other = await openHost('other');
    const command = host.cutCommand('cable');
    const cutsWithin = event === 'is cut off' && isDuringRequest;
    const sender = await startWorker(host, cutsWithin ? { atStep: { step: 'begin', command } } : {});
    await account.enqueue(2);
    await until('it sends', () => account.arrivals().length === 2);
    await startWorker(other);
    const { platformId } = account;
    if (cutsWithin) sender.arm();
    else if (isDuringRequest) gateway.beforeNextResponse(platformId, whatHappens(event, sender, host));
    await account.enqueue(WAITING);
    const readAt = () => (cutsWithin ? sender.steppedAt() : gateway.steppedAt(platformId));
    if (isDuringRequest) await until('the sender comes to the step', () => readAt() !== undefined);
    else await letHappenBetweenSends();
    const since = readAt() ?? now();
    const deadline = since + TAKES_OVER_WITHIN_MS;
    const first = () => account.arrivals().find(({ from }) => from.endsWith(other.address));
    while (first() === undefined && now() < deadline) await delay(LOOK_EVERY_MS);
    const found = first();
    return found && found.readAt - since;

    async function letHappenBetweenSends() {
      await until('it sends', () => account.arrivals().length === 4);
      await delay(BETWEEN_SENDS_MS);
      const [program = '', ...args] = whatHappens(event, sender, host);
      execFileSync(program, args);
    }
  });
}

function whatHappens(event: TakeOver['event'], sender: LateWorker, host: Host): readonly string[] {
  const signal = (name: string) => ['kill', `-${name}`, String(sender.pid)];
  switch (event) {
    case 'ends in good order':
      return signal('TERM');
    case 'is killed':
      return signal('KILL');
    case 'is stopped':
      return signal('STOP');
    case 'is cut off':
      return host.cutCommand('cable');
  }
}

/** As a table of docs/deploy.md. */
export function formatTakeOvers(measured: readonly { readonly takeOver: TakeOver; readonly ms: number | undefined }[]) {
  const nameOf = (kernel: KernelSettings) =>
    Object.entries(kernel)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ') || 'kernel as it is';
  const cell = (wanted: TakeOver) => {
    const ms = measured.find(({ takeOver }) => takeOver === wanted)?.ms;
    return ms === undefined ? `over ${TAKES_OVER_WITHIN_MS / 1_000} s` : `${(ms / 1_000).toFixed(1)} s`;
  };
  const columns = KERNELS.flatMap((kernel) => [false, true].map((isDuringRequest) => ({ kernel, isDuringRequest })));
  const head = columns.map(
    ({ kernel, isDuringRequest }) => `${isDuringRequest ? 'during a request' : 'between sends'}, ${nameOf(kernel)}`,
  );
  const rows = [...new Set(TAKE_OVERS.map(({ event }) => event))].map((event) => [
    `the sender ${event}`,
    ...columns.map((column) => {
      const takeOver = TAKE_OVERS.find(
        (each) =>
          each.event === event && each.kernel === column.kernel && each.isDuringRequest === column.isDuringRequest,
      );
      return takeOver === undefined ? '' : cell(takeOver);
    }),
  ]);
  return [['', ...head], ['---', ...head.map(() => '---')], ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}
