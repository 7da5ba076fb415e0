import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { now } from './gateway.js';
import type { Host, KernelSettings } from './network.js';
import type { Rig } from './rig.js';
import { inScene } from './scene.js';
import type { LateWorker } from './worker.js';

/**
 * How long an account waits until another host sends: from what happens to the sender to the other's first request at
 * the gateway. All settings of the workers are the defaults.
 */
export interface TakeOver {
  readonly event: 'ends in good order' | 'is killed' | 'is cut off' | 'is stopped';
  /** Both hosts use one folder of journals; otherwise each has its own. */
  readonly sharesJournal: boolean;
  /** Whether a request has no response yet. It has reached the gateway, unless the host is cut off. */
  readonly isDuringRequest: boolean;
  /** Of the sender's host. */
  readonly kernel: KernelSettings;
}

/** As they are, and so that a request is given up sooner (docs/deploy.md). */
const KERNELS: readonly KernelSettings[] = [{}, { tcp_retries2: 5, tcp_orphan_retries: 3 }];

const EVENTS = [
  { event: 'ends in good order', sharesJournal: true },
  { event: 'ends in good order', sharesJournal: false },
  { event: 'is killed', sharesJournal: false },
  { event: 'is cut off', sharesJournal: false },
  { event: 'is stopped', sharesJournal: false },
] as const;

const COLUMNS = [
  { isDuringRequest: false, kernel: KERNELS[0] ?? {} },
  ...KERNELS.map((kernel) => ({ isDuringRequest: true, kernel })),
];

export const TAKE_OVERS: readonly TakeOver[] = EVENTS.flatMap((event) =>
  COLUMNS.map((column) => ({ ...event, ...column })),
);

const WAITING = 30;
const TAKES_OVER_WITHIN_MS = 1_300_000;
const LOOK_EVERY_MS = 50;

/** @returns ms, or undefined if the other did not send within {@link TAKES_OVER_WITHIN_MS} */
export async function measureTakeOver({ stage, gateway }: Rig, takeOver: TakeOver): Promise<number | undefined> {
  const { event, sharesJournal, isDuringRequest, kernel } = takeOver;
  return inScene(stage, gateway, async ({ account, openHost, startWorker }) => {
    const { platformId } = account;
    const host = await openHost('sender', kernel);
    const other = await openHost('other');
    const journal = sharesJournal ? { journalDir: join(stage.dir, `journal-of-${platformId}`) } : {};
    const cutsWithin = event === 'is cut off' && isDuringRequest;
    const atStep = { step: 'begin', command: host.cutCommand('cable') } as const;
    const sender = await startWorker(host, { ...journal, ...(cutsWithin && { atStep }) });
    await account.enqueue(2);
    await until('it has sent', async () => (await account.producer.stats()).completed === 2);
    await startWorker(other, journal);
    const [program = '', ...args] = whatHappens(event, sender, host);
    if (cutsWithin) sender.arm();
    else if (isDuringRequest) gateway.beforeNextResponse(platformId, [program, ...args]);
    // Nothing waits yet, so that no request has begun.
    else execFileSync(program, args);
    let since = now();
    await account.enqueue(WAITING);
    if (isDuringRequest) {
      const readSteppedAt = () => (cutsWithin ? sender.steppedAt() : gateway.steppedAt(platformId));
      await until('the sender comes to the step', () => readSteppedAt() !== undefined);
      since = readSteppedAt() ?? since;
    }
    const findFirst = () => account.arrivals().find(({ from }) => from.endsWith(other.address));
    while (findFirst() === undefined && now() < since + TAKES_OVER_WITHIN_MS) await delay(LOOK_EVERY_MS);
    const first = findFirst();
    return first && first.readAt - since;
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

/** The table of docs/deploy.md. @param measured - ms of each of {@link TAKE_OVERS}, in their order */
export function formatTakeOvers(measured: readonly (number | undefined)[]) {
  const nameKernel = (kernel: KernelSettings) =>
    Object.entries(kernel).map(([name, value]) => `, \`${name}\` ${value}`);
  const head = COLUMNS.map(({ isDuringRequest, kernel }) =>
    [isDuringRequest ? 'during a request' : 'between two', ...nameKernel(kernel)].join(''),
  );
  const rows = EVENTS.map(({ event, sharesJournal }, row) => [
    `the sender ${event}${sharesJournal ? ', one journal for both' : ''}`,
    ...measured
      .slice(row * COLUMNS.length, (row + 1) * COLUMNS.length)
      .map((ms) => (ms === undefined ? `over ${TAKES_OVER_WITHIN_MS / 1_000} s` : `${(ms / 1_000).toFixed(0)} s`)),
  ]);
  return [['', ...head], ['---', ...head.map(() => '---')], ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}
