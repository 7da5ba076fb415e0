import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { type Outcome, runCell } from '../durable/cell.js';
import type { OpenEngine } from '../durable/engine.js';
import { type Fault, FAULTS } from '../durable/faults.js';
import { openOwn } from '../durable/own-engine.js';
import { openPeer, type Peer } from '../durable/peer-engine.js';
import { type Figure, figure } from '../figure.js';
import { sum } from '../statistics.js';

const PROJECT = 'payout-queue';
const NAMES: Readonly<Record<Peer, string>> = { bullmq: 'BullMQ', dbos: 'DBOS', restate: 'Restate' };

/** Those that BullMQ's Redis is enough for are in the short form. */
const ENGINES: readonly { readonly name: string; readonly open: OpenEngine; readonly quick: boolean }[] = [
  { name: PROJECT, open: openOwn, quick: true },
  ...(['bullmq', 'dbos', 'restate'] as const).flatMap((peer) => [
    { name: NAMES[peer], open: opener(peer, false), quick: peer === 'bullmq' },
    { name: `${NAMES[peer]}, with care`, open: opener(peer, true), quick: peer === 'bullmq' },
  ]),
];

/** Of all engines, so that the machine does not change their pace. */
const AT_ONCE = 8;

/**
 * The same merchant's loop (payouts one a second, each once) on engines that survive crashes, each under seven faults, each
 * with a gateway, a store and workers of its own. The gateway counts.
 */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const count = quick ? 6 : 60;
  if (!quick) install();
  const cells = FAULTS.filter((fault) => !quick || fault.quick).flatMap((fault) =>
    ENGINES.filter((engine) => !quick || engine.quick).map((engine) => ({ engine, fault })),
  );
  note(`${count} payouts in each of ${cells.length} runs, ${AT_ONCE} at once`);
  const outcomes = new Map<(typeof cells)[number], Outcome>();
  await inLanes(AT_ONCE, cells, async (cell) => {
    const title = `${cell.fault.name}, ${cell.engine.name}`;
    try {
      const outcome = await runCell(cell.engine.open, cell.fault, { count, isQuick: quick });
      outcomes.set(cell, outcome);
      note(`${title}: ${JSON.stringify(outcome)}`);
    } catch (error) {
      // The others go on. Its figures are empty, so that the run fails.
      note(`${title} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
  });
  const rows = cells.map((cell) => toRow(cell.fault, cell.engine.name, outcomes.get(cell)));
  return { rows, figures: judge(rows, count) };
}

function judge(rows: readonly ReturnType<typeof toRow>[], count: number): Figure[] {
  const own = rows.filter(({ engine }) => engine === PROJECT);
  const none = (name: 'paidTwice' | 'tooClose' | 'misled' | 'lost') =>
    figure(`payout-queue: ${name}`, sum(own.map((row) => row[name])), { atMost: 0 });
  const arrived = rows.map(({ fault, engine, arrivals }) =>
    figure(`${fault}, ${engine}: arrivals`, arrivals, { atLeast: Math.round(count / 3) }),
  );
  return [none('paidTwice'), none('tooClose'), none('misled'), none('lost'), ...arrived];
}

function toRow({ name }: Fault, engine: string, outcome: Outcome | undefined) {
  const { arrivals = NaN, paidTwice = NaN, misled = NaN, lost = NaN, asks = NaN } = outcome ?? {};
  const { tooClose = NaN, shortestMs = NaN, closeGapsMs = [] } = outcome ?? {};
  return { fault: name, engine, arrivals, paidTwice, tooClose, shortestMs, closeGapsMs, misled, lost, asks };
}

function opener(peer: Peer, careful: boolean): OpenEngine {
  return async (account) => openPeer(peer, careful, account);
}

/** What only the long form needs. */
function install(): void {
  const scripts = ['../../scripts/setup.mjs', '../install.mjs'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  for (const [script, argument] of [
    [scripts[0], '--with-postgres'],
    [scripts[1], 'durable'],
  ]) {
    const { status } = spawnSync(process.execPath, [script ?? '', argument ?? ''], { stdio: ['ignore', 2, 2] });
    if (status !== 0) throw new Error(`${script ?? ''} failed`);
  }
}

async function inLanes<Item>(
  lanes: number,
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  const lane = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
