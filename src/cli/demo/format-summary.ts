import { relative } from 'node:path';
import { formatMs } from '../../base/format.js';
import { PAYOUT_STATES } from '../../ledger/states.js';
import type { CliContext } from '../context/cli-context.js';
import { colourState, formatTable } from '../output/format-table.js';
import type { DemoStage } from './demo-stage.js';
import { ALLOWED_GAP_MS, type DemoSummary, type UnknownPayout } from './demo-summary.js';

type Colours = CliContext['colours'];

const SECONDS_PER_HOUR = 3_600;

export function formatSummary(summary: DemoSummary, callers: Callers, colours: Colours): string {
  const seconds = Math.round(summary.durationMs / 1_000);
  const verdict = summary.ok
    ? colours.green(`The promises held: never too fast, never twice, never lost (${seconds} s).`)
    : colours.red(`Something went wrong (${seconds} s):`);
  const problems = summary.problems.map((problem) => `  ${problem}\n`).join('');
  return `\n${verdict}\n${problems}\n${formatFacts(summary, colours)}${formatUnknown(summary.unknown, callers, colours)}`;
}

function formatFacts(summary: DemoSummary, colours: Colours): string {
  const { states, smallestGapMs, meanPeriodMs, payoutsPerSecond, sentTwice, workerKills } = summary;
  const counts = PAYOUT_STATES.filter((state) => states[state] > 0).map(
    (state) => `${states[state]} ${colourState(state, colours)}`,
  );
  const rows = [['', 'payouts', `${counts.join(', ')} (of ${summary.payouts})`]];
  if (smallestGapMs !== null && meanPeriodMs !== null && payoutsPerSecond !== null) {
    const perHour = Math.round(payoutsPerSecond * SECONDS_PER_HOUR);
    const takeovers = workerKills === 0 ? '' : ', takeovers included';
    rows.push(
      [
        '',
        'smallest gap',
        `${formatMs(smallestGapMs)} between two arrivals at the gateway (minimum allowed: ${ALLOWED_GAP_MS} ms)`,
      ],
      ['', 'period', `${formatMs(meanPeriodMs)} from one payout to the next on average${takeovers}`],
      ['', 'rate', `${payoutsPerSecond.toFixed(2)} per second, ${perHour} per hour`],
    );
  }
  rows.push(['', 'sent twice', String(sentTwice)]);
  if (workerKills > 0) rows.push(['', 'worker killed', `${workerKills} times with SIGKILL, restarted each time`]);
  return formatTable(rows);
}

function formatUnknown(unknown: readonly UnknownPayout[], callers: Callers, colours: Colours): string {
  if (unknown.length === 0) return '';
  const explained = unknown.map(({ payoutId, amount, txhash, command }) => {
    const found =
      txhash === null
        ? 'the gateway never received it; it can be sent again'
        : 'the gateway paid it; sending it again would have paid twice';
    return `  ${colours.yellow(payoutId)}  ${amount}: ${found}\n    ${command.replace(/^payouts/, callers.payouts)}\n`;
  });
  return `
Unknown payouts: the worker was killed after it began to send and before it got
the response, so only the gateway knows whether they were paid. They are not sent
again automatically: an operator checks the gateway and decides. The demo checked:

${explained.join('')}`;
}

/** How the user calls this program: through npm in a clone, or by name. */
interface Callers {
  readonly demo: string;
  readonly payouts: string;
}

/** @param npmScript - the running npm script, if any */
export function callersOf(npmScript: string | undefined): Callers {
  return npmScript === 'demo'
    ? { demo: 'npm run demo --', payouts: 'npx payouts' }
    : { demo: 'payouts demo', payouts: 'payouts' };
}

export function formatHints({ demo }: Callers, file: string): string {
  const fromHere = relative(process.cwd(), file);
  const hints = [
    ['', `${demo} --chaos`, 'kill the worker repeatedly while it sends'],
    ['', `${demo} --keep`, 'keep everything running and try the other commands'],
    ['', `${demo} --payouts 60`, 'more payouts'],
    ['', fromHere.startsWith('..') ? file : fromHere, 'edit these payouts and run the demo again'],
  ];
  return `\nTry next:\n${formatTable(hints)}`;
}

export function formatKept({ environment, healthUrl, sandbox, worker }: DemoStage, { payouts }: Callers): string {
  const settings = Object.entries(environment).map(([name, value]) => `export ${name}=${value}\n`);
  const address = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
  const commands = [
    `${payouts} stats`,
    `${payouts} list --state completed`,
    `${payouts} enqueue --payout-id mine-1 --payment-id 6 --amount 12.5 --address-to ${address}`,
    `${payouts} get mine-1`,
    `${payouts} dashboard`,
    `curl ${sandbox.url}/__sandbox/stats`,
    `curl ${healthUrl}/metrics`,
  ];
  return `
Redis, gateway and worker (process ${worker.pid ?? 0}) keep running until Ctrl-C. In another terminal, set

${settings.join('')}
and try

${commands.map((command) => `${command}\n`).join('')}`;
}
