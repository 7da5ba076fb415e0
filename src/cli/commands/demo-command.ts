import { Option, type Command } from 'commander';
import picocolors from 'picocolors';
import { InvalidInputError } from '../../errors.js';
import type { CliContext } from '../context/cli-context.js';
import type { DemoView } from '../demo/demo-view.js';
import { formatPolicy } from '../demo/policy/format-policy.js';
import { runPolicyDemo } from '../demo/policy/run-policy-demo.js';
import { formatForge } from '../demo/forge/format-forge.js';
import type { ForgeSummary } from '../demo/forge/forge-summary.js';
import { runForge } from '../demo/forge/run-forge.js';
import type { PolicySummary } from '../demo/policy/policy-summary.js';
import type { StoryOptions } from '../demo/story-options.js';
import { callersOf, formatHints, formatKept } from '../demo/format-hints.js';
import { formatSummary } from '../demo/format-summary.js';
import { createLineView } from '../demo/line-view.js';
import { DEMO_FILE, readDemoPayouts } from '../demo/read-demo-payouts.js';
import { runDemo } from '../demo/run-demo.js';
import { createTableView } from '../demo/table-view.js';
import { CommandFailedError, EXIT_CODES } from '../context/exit-code.js';

const HELP_AFTER = `
Starts its own Redis, sandbox gateway (with network jitter) and worker, sends the payouts of
${DEMO_FILE},
shows their progress, and reports at the end whether the promises held. It stops everything that it started and touches
nothing else.

Exit code 0: all payouts completed (with --chaos: or unknown), none less than 1000 ms after another, none twice.

With --forge it sends payouts of its own, and somebody who can write to Redis attacks them: in an account without keys,
and in one with them. The gateway's book shows what was paid in each. Exit code 0: each attack succeeded without keys, none
with them.

With --policy an account has keys and a policy: two persons approve a large payout, a window makes others wait, and somebody
who has stolen the shop's signing key orders as well. Exit code 0: each rule held.

Examples:
  payouts demo
  payouts demo --chaos
  payouts demo --forge
  payouts demo --policy
  payouts demo --payouts 60 --json
  payouts demo --keep
`;

const MOST_PAYOUTS = 1_000;

interface Flags {
  readonly payouts?: string;
  readonly chaos?: true;
  readonly forge?: true;
  readonly policy?: true;
  readonly keep?: true;
  readonly json?: true;
}

/** Defines `payouts demo`. */
export function defineDemoCommand(command: Command, context: CliContext): void {
  command
    .option('--payouts <number>', 'how many payouts; the file is repeated as needed (default: the whole file)')
    .option('--chaos', 'kill the worker with SIGKILL at random moments and start it again')
    .addOption(
      new Option('--forge', 'attack payouts in Redis, with and without signing keys').conflicts([
        'payouts',
        'chaos',
        'keep',
        'policy',
      ]),
    )
    .addOption(
      new Option('--policy', 'show caps, approvals and a stolen signing key').conflicts(['payouts', 'chaos', 'keep']),
    )
    .option('--keep', 'keep everything running after the summary, until Ctrl-C')
    .option('--json', 'print the summary as one JSON object')
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: Flags) => {
      if (flags.forge) await tell(FORGE, context, flags);
      else if (flags.policy) await tell(POLICY, context, flags);
      else await demonstrate(context, flags);
    });
}

async function demonstrate(context: CliContext, { payouts, chaos, keep, json }: Flags): Promise<void> {
  const { environment, colours } = context;
  const callers = callersOf(environment['npm_lifecycle_event']);
  const count = payouts === undefined ? undefined : parseCount(payouts);
  const stop = stopSignal(context);
  const { ok } = await runDemo({
    payouts: await readDemoPayouts(DEMO_FILE, stop, count),
    chaos: chaos === true,
    keep: keep === true,
    path: environment['PATH'] ?? '',
    view: createView(context),
    stop,
    onSummary: (summary, stage) => {
      if (json) context.writeJson(keep ? { ...summary, environment: stage.environment } : summary);
      else context.write(formatSummary(summary, callers, colours));
      if (keep) context.writeError(formatKept(stage, callers));
      else if (!json) context.write(formatHints(callers, DEMO_FILE));
    },
  });
  if (!ok) throw new CommandFailedError('The promises did not hold');
}

/** A demo that tells a story of its own, and judges how it came out. */
interface Story<Summary> {
  readonly run: (options: StoryOptions) => Promise<Summary>;
  readonly format: (summary: Summary, colours: CliContext['colours']) => string;
  /** What is said where it came out otherwise. */
  readonly failure: string;
}

const FORGE: Story<ForgeSummary> = {
  run: runForge,
  format: formatForge,
  failure: 'The attacks did not come out as they must',
};
const POLICY: Story<PolicySummary> = {
  run: runPolicyDemo,
  format: formatPolicy,
  failure: 'The policy did not come out as it must',
};

async function tell<Summary extends { readonly ok: boolean }>(
  { run, format, failure }: Story<Summary>,
  context: CliContext,
  { json }: Flags,
): Promise<void> {
  const summary = await run({
    path: context.environment['PATH'] ?? '',
    note: (line) => {
      context.writeError(`${line}\n`);
    },
    stop: stopSignal(context),
  });
  if (json) context.writeJson(summary);
  else context.write(format(summary, context.colours));
  if (!summary.ok) throw new CommandFailedError(failure);
}

function parseCount(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= MOST_PAYOUTS) return Number(text);
  const message = `must be a whole number from 1 to ${MOST_PAYOUTS} (got "${text}")`;
  throw new InvalidInputError([{ field: '--payouts', message }]);
}

/** Progress goes to stderr: whether that is a terminal decides how it is shown. */
function createView({ environment, writeError }: CliContext): DemoView {
  const { stderr } = process;
  if (!stderr.isTTY || environment['TERM'] === 'dumb') return createLineView(writeError);
  return createTableView(stderr, picocolors.createColors((environment['NO_COLOR'] ?? '') === ''));
}

/** The first signal stops everything in order; a second one exits at once, but still stops Redis and the worker. */
function stopSignal(context: CliContext): AbortSignal {
  const exitAtOnce = (): void => process.exit(EXIT_CODES.failed);
  let signals = 0;
  const onSignal = (): void => {
    signals += 1;
    if (signals > 1) exitAtOnce();
  };
  // Stays: at a moment without a listener a second signal would end this process before it has stopped the others.
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const stop = context.stopSignal();
  // The terminal was closed.
  process.once('SIGHUP', exitAtOnce);
  return stop;
}
