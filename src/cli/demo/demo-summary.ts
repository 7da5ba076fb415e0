import { relative } from 'node:path';
import { formatMs } from '../../base/format.js';
import type { CliContext } from '../context/cli-context.js';
import { colourState, formatTable } from '../output/format-table.js';
import { lastMessage, type Payout } from '../../ledger/payout.js';
import { PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';
import { nextSteps, shellQuote } from '../../operator/next-steps.js';
import type { Payment, SandboxStats } from '../../sandbox/index.js';
import { DEMO_PLATFORM_ID, type DemoStage } from './demo-stage.js';

export interface DemoSummary {
  /** All completed (with chaos: or unknown), none too fast, none twice. */
  readonly ok: boolean;
  readonly problems: readonly string[];
  readonly payouts: number;
  readonly states: Readonly<Record<PayoutState, number>>;
  /** Smallest time between two withdrawals at the sandbox; null for fewer than two. */
  readonly smallestGapMs: number | null;
  readonly meanPeriodMs: number | null;
  readonly payoutsPerSecond: number | null;
  /** Payments beyond one a payout. */
  readonly sentTwice: number;
  readonly workerKills: number;
  readonly durationMs: number;
  readonly unknown: readonly UnknownPayout[];
}

interface UnknownPayout {
  readonly payoutId: string;
  readonly amount: string;
  readonly addressTo: string;
  /** Null if the gateway made no payment. */
  readonly gatewayId: string | null;
  readonly command: string;
}

export interface DemoOutcome {
  readonly payouts: readonly Payout[];
  readonly payments: readonly Payment[];
  readonly sandbox: Pick<SandboxStats, 'smallestGapMs' | 'meanGapMs' | 'blockedReason'>;
  readonly pausedReason: string | undefined;
  /** The worker was killed, so an interrupted send must become `unknown`. */
  readonly chaos: boolean;
  readonly workerKills: number;
  readonly durationMs: number;
}

/** The gateway's limit, ms (docs/gateway-api-v1.md#limits), of both generations. */
const ALLOWED_GAP_MS = 1_000;

export function summarise(outcome: DemoOutcome): DemoSummary {
  const { payouts, payments, sandbox, workerKills, durationMs } = outcome;
  const { ofUnknown, surplus } = matchPayments(payouts, payments);
  const counts = PAYOUT_STATES.map((state) => [state, payouts.filter((payout) => payout.state === state).length]);
  const problems = findProblems(outcome, surplus);
  return {
    ok: problems.length === 0,
    problems,
    payouts: payouts.length,
    states: Object.fromEntries(counts) as Record<PayoutState, number>,
    smallestGapMs: sandbox.smallestGapMs,
    meanPeriodMs: sandbox.meanGapMs,
    payoutsPerSecond: sandbox.meanGapMs === null ? null : 1_000 / sandbox.meanGapMs,
    sentTwice: surplus.length,
    workerKills,
    durationMs,
    unknown: payouts
      .filter(({ state }) => state === 'unknown')
      .map((payout) => explainUnknown(payout, ofUnknown.get(payout.payoutId))),
  };
}

function findProblems({ payouts, sandbox, pausedReason, chaos }: DemoOutcome, surplus: readonly Payment[]): string[] {
  const { smallestGapMs, blockedReason } = sandbox;
  const problems: string[] = [];
  if (smallestGapMs !== null && smallestGapMs < ALLOWED_GAP_MS) {
    problems.push(`Two payouts arrived ${formatMs(smallestGapMs)} apart; the gateway allows ${ALLOWED_GAP_MS} ms.`);
  }
  if (blockedReason !== null) problems.push(`The gateway blocked the account: ${blockedReason}.`);
  if (pausedReason !== undefined) problems.push(`The account was paused: ${pausedReason}.`);
  for (const { amount, addressTo, gatewayId } of surplus) {
    problems.push(`A payment of ${amount} to ${addressTo} was made twice (gatewayId ${gatewayId}).`);
  }
  for (const payout of payouts) {
    const { payoutId, state } = payout;
    const message = lastMessage(payout);
    if (state === 'completed' || (chaos && state === 'unknown')) continue;
    problems.push(`Payout ${payoutId} is ${state}${message === undefined ? '' : `: ${message}`}.`);
  }
  return problems;
}

function explainUnknown(payout: Payout, payment: Payment | undefined): UnknownPayout {
  const { payoutId, amount, addressTo } = payout;
  const option = payment === undefined ? '--not-sent' : '--sent';
  const step = nextSteps(payout, DEMO_PLATFORM_ID).find(({ command }) => command?.includes(option));
  const reason = payment === undefined ? 'the gateway never received it' : 'the gateway shows the payment';
  const command = (step?.command ?? '')
    .replace('GATEWAY_ID', payment?.gatewayId ?? '')
    .replace('WHY', shellQuote(reason));
  return { payoutId, amount, addressTo, gatewayId: payment?.gatewayId ?? null, command };
}

interface MatchedPayments {
  /** The gateway's payments, by payoutId. */
  readonly ofUnknown: ReadonlyMap<string, Payment>;
  /** Payments without a payout: a recipient was paid twice. */
  readonly surplus: readonly Payment[];
}

/**
 * Two payouts may share recipient and amount, so these alone identify no payment.
 *
 * A payment belongs to the payout with its gatewayId. Without one, it may belong to an `unknown` payout with the same
 * recipient and amount; if its amount is in another currency (`symbol`), of any amount. All others are surplus.
 */
function matchPayments(payouts: readonly Payout[], payments: readonly Payment[]): MatchedPayments {
  const known = new Set(payouts.map(({ gatewayId }) => gatewayId));
  const ofUnknown = new Map<string, Payment>();
  const surplus: Payment[] = [];
  for (const payment of payments.filter(({ gatewayId }) => !known.has(gatewayId))) {
    const owner = payouts.find(
      ({ payoutId, state, addressTo, amount, symbol }) =>
        state === 'unknown' &&
        addressTo === payment.addressTo &&
        (amount === payment.amount || symbol !== undefined) &&
        !ofUnknown.has(payoutId),
    );
    if (owner === undefined) surplus.push(payment);
    else ofUnknown.set(owner.payoutId, payment);
  }
  return { ofUnknown, surplus };
}

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
  const explained = unknown.map(({ payoutId, amount, gatewayId, command }) => {
    const found =
      gatewayId === null
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

interface Callers {
  readonly demo: string;
  readonly payouts: string;
}

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
