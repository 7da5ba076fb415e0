import type { Command } from 'commander';
import picocolors from 'picocolors';
import { z } from 'zod';
import { InvalidInputError, type Problem } from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { ACCOUNT_SETTINGS } from '../../base/settings.js';
import { sourcePath } from '../../base/source-path.cjs';
import type { ValidPayout } from '../../ledger/payout.js';
import type { CliContext } from '../context/cli-context.js';
import { CommandFailedError, EXIT_CODES } from '../context/exit-code.js';
import { help, refuse } from '../context/flags.js';
import { checkRows } from '../import/check-rows.js';
import { openSource } from '../import/open-source.js';
import { createLineView, createTableView, type DemoView } from './demo-view.js';
import { callersOf, formatHints, formatKept, formatSummary } from './demo-summary.js';
import { type Demo, runDemo } from './run-demo.js';

/** Next to `dist` or `src`, in a clone and in an installed package. */
const DEMO_FILE = sourcePath('../examples/payouts.csv');

/**
 * Users edit the file, so every problem names its line.
 * @param count - repeats the file as needed, with new ids
 */
async function readDemoPayouts(file: string, signal: AbortSignal, count?: number): Promise<ValidPayout[]> {
  const problems: Problem[] = [];
  const source = await openSource(file, signal);
  const { checked } = await checkRows(source, { checksums: true }, signal, (line, { field, message }) => {
    problems.push({ field: `${file}: line ${line}: ${field}`, message });
  });
  const payouts = checked.map(({ payout }) => payout);
  if (problems.length === 0 && payouts.length === 0) problems.push({ field: file, message: 'contains no payouts' });
  if (problems.length > 0) throw new InvalidInputError(problems);
  return Array.from({ length: count ?? payouts.length }, (_, index) => repeat(payouts, index));
}

function repeat(payouts: readonly ValidPayout[], index: number): ValidPayout {
  const payout = payouts[index % payouts.length];
  if (payout === undefined) throw new RangeError('No payout to repeat');
  const copy = Math.floor(index / payouts.length) + 1;
  return copy === 1 ? payout : { ...payout, payoutId: `${payout.payoutId}-${copy}` };
}

const MOST_PAYOUTS = 1_000;

interface Flags {
  readonly payouts?: string;
  readonly gateway: string;
  readonly chaos?: true;
  readonly keep?: true;
  readonly json?: true;
}

export function defineDemoCommand(command: Command, context: CliContext): void {
  command
    .option('--payouts <number>', 'how many payouts; the file is repeated as needed (default: the whole file)')
    .option('--gateway <api>', 'which generation of the API the worker speaks: v1 or v2', ACCOUNT_SETTINGS.api.default)
    .option('--chaos', 'kill the worker with SIGKILL at random moments and start it again')
    .option('--keep', 'keep everything running after the summary, until Ctrl-C')
    .option('--json', 'print the summary as one JSON object')
    .addHelpText(
      'after',
      help(
        `Starts its own Redis, sandbox gateway (with network jitter) and worker, and stops them again. It sends the payouts of
${DEMO_FILE}.
Exit code 0: all completed (with --chaos: or unknown), none less than 1000 ms after another, none twice.`,
        'payouts demo',
        'payouts demo --chaos',
        'payouts demo --payouts 60 --json',
        'payouts demo --gateway v2',
        'payouts demo --keep',
      ),
    )
    .action(async (flags: Flags) => demonstrate(context, flags));
}

async function demonstrate(context: CliContext, { payouts, gateway, chaos, keep, json }: Flags): Promise<void> {
  const { environment, colours } = context;
  const callers = callersOf(environment['npm_lifecycle_event']);
  const count = payouts === undefined ? undefined : parseCount(payouts);
  const api = parseInput(z.object({ '--gateway': ACCOUNT_SETTINGS.api.rule }), { '--gateway': gateway })['--gateway'];
  const stop = stopSignal(context);
  const demo: Demo = {
    api,
    payouts: await readDemoPayouts(DEMO_FILE, stop, count),
    chaos: chaos === true,
    keep: keep === true,
    view: createView(context),
    stop,
    onSummary: (summary, stage) => {
      if (json) context.writeJson(keep ? { ...summary, environment: stage.environment } : summary);
      else context.write(formatSummary(summary, callers, colours));
      if (keep) context.writeError(formatKept(stage, callers));
      else if (!json) context.write(formatHints(callers, DEMO_FILE));
    },
  };
  const { ok } = await runDemo(demo, environment['PATH'] ?? '');
  if (!ok) throw new CommandFailedError('The promises did not hold');
}

function parseCount(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= MOST_PAYOUTS) return Number(text);
  const message = `must be a whole number from 1 to ${MOST_PAYOUTS} (got "${text}")`;
  refuse('--payouts', message);
}

function createView({ environment, writeError }: CliContext): DemoView {
  const { stderr } = process;
  if (!stderr.isTTY || environment['TERM'] === 'dumb') return createLineView(writeError);
  return createTableView(stderr, picocolors.createColors((environment['NO_COLOR'] ?? '') === ''));
}

/** A second signal exits at once, but still stops Redis and the worker. */
function stopSignal(context: CliContext): AbortSignal {
  const exitAtOnce = (): void => process.exit(EXIT_CODES.failed);
  let signals = 0;
  const onSignal = (): void => {
    signals += 1;
    if (signals > 1) exitAtOnce();
  };
  // Never removed: without a listener, a second signal would leave the others running.
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const stop = context.stopSignal();
  process.once('SIGHUP', exitAtOnce);
  return stop;
}
