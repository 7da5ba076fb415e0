import { PAYOUT_STATES } from '../../ledger/states.js';
import type { CliContext } from '../context/cli-context.js';
import { colourState } from '../output/colour-state.js';
import { formatTable } from '../output/format-table.js';
import { ALLOWED_GAP_MS, type DemoSummary, type UnknownPayout } from './demo-summary.js';
import type { Callers } from './format-hints.js';
import { formatMs } from '../../format.js';

type Colours = CliContext['colours'];

const SECONDS_PER_HOUR = 3_600;

/** The summary as text. */
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
