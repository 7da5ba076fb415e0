import { formatCount, formatDuration, formatMoney } from '../base/format.js';
import type { Payout } from '../ledger/payout.js';
import type { GatewayFacts } from '../ledger/reads/gateway-facts.js';
import type { CurrencySum } from '../ledger/reads/statistics.js';
import { senderOf } from '../ledger/reads/workers.js';
import { formatCommand } from './next-steps.js';
import {
  type LedgerObservation,
  type Observation,
  type ObservedWorker,
  WORKER_SILENT_AFTER_MS,
} from './account-poller.js';

export interface Headline {
  /** `bad`: nothing is sent, and an operator must act; `warn`: nothing is sent just now, or something is slow. */
  readonly tone: 'good' | 'warn' | 'bad';
  /** The first words of every page about the account, and the title of the browser's tab. */
  readonly headline: string;
  readonly detail: string | undefined;
  readonly command?: string;
  /** The page that says what to do, such as `docs/runbooks/paused.md`. Undefined if there is nothing to do. */
  readonly runbook?: string;
}

/** The words of each headline, and its runbook. */
export const HEADLINES = {
  sending: ['Sending'],
  idle: ['Idle'],
  checking: ['Checking'],
  redisDown: ['Redis does not respond', 'redis-down'],
  mismatch: ['Stopped: ledger mismatch', 'ledger-mismatch'],
  paused: ['Paused', 'paused'],
  noWorker: ['No worker', 'worker-missing'],
  noSender: ['Waiting for a sender', 'worker-missing'],
  silent: ['Sender without heartbeat', 'worker-missing'],
  refused: ['The worker refuses to send', 'journal'],
  disk: ['Journal disk', 'disk'],
  redisRefused: ['Redis cannot be used', 'redis-refused'],
  gatewayDown: ['Gateway down', 'gateway'],
  gatewaySlow: ['Gateway slow', 'gateway'],
  noResponse: ['No response from the gateway', 'gateway'],
  queriesFail: ['Gateway query fails', 'gateway'],
  pollsFail: ['Polling fails', 'gateway'],
  sendsFail: ['Sending fails', 'nothing-is-sent'],
  standsStill: ['Nothing is sent', 'nothing-is-sent'],
  holds: ['Holds payouts', 'held'],
  otherVersion: ['Ledger of another version', 'journal'],
} as const satisfies Readonly<Record<string, readonly [words: string, runbook?: string]>>;

function say(name: keyof typeof HEADLINES, tone: Headline['tone'], detail?: string, command?: string): Headline {
  const [headline, runbook] = HEADLINES[name];
  return {
    ...{ tone, headline, detail },
    ...(command !== undefined && { command }),
    ...(runbook !== undefined && { runbook: `docs/runbooks/${runbook}.md` }),
  };
}

/** The headline of a ledger that this version cannot read. */
export function otherVersionHeadline({ message }: Error): Headline {
  return say('otherVersion', 'bad', message);
}

/** Longer than a slow response of the gateway. */
const STANDS_STILL_AFTER_MS = 15_000;

/** A response takes a few seconds at most. */
const RESPONSE_SLOW_MS = 6_000;

/** Fewer may fail because the gateway closed an idle connection. */
const FAILURES = 2;

const START = 'payouts worker';

/** An unreachable gateway. Any other failed attempt has its cause on this side. */
const GATEWAY_DOWN = 'GATEWAY_UNAVAILABLE';

/** The send journal cannot be written. */
const JOURNAL_DISK = 'JOURNAL_UNAVAILABLE';

type FindObstacle = (ledger: LedgerObservation, sender: ObservedWorker | undefined) => Headline | undefined;

/** Facts that are read less often than the account is watched. Without them the headline says less. */
export interface HeadlineFacts {
  /** Its last response: without sends there is no other sign of it. */
  readonly gateway?: Pick<GatewayFacts, 'failure' | 'failureCode' | 'currencies'>;
  readonly heldSums?: readonly CurrencySum[];
  /** The payout that has been held longest. */
  readonly firstHeld?: Pick<Payout, 'held'> | undefined;
}

/**
 * Says in one line whether money moves. Of several obstacles, the first that an operator must resolve counts. The
 * dashboard, `payouts status`, `payouts doctor` and the health server all use it.
 */
export function accountHeadline({ redis, ledger }: Observation, facts: HeadlineFacts = {}): Headline {
  if (redis.kind === 'unavailable') {
    const detail = `For ${formatDuration(redis.sinceMs)}: ${redis.reason}. Workers that cannot reach it either send nothing meanwhile, and nothing is lost: check that it runs, and REDIS_URL.`;
    return say('redisDown', 'bad', detail);
  }
  if (ledger === undefined) return say('checking', 'warn');
  const sender = findSender(ledger);
  for (const find of OBSTACLES) {
    const found = find(ledger, sender);
    if (found !== undefined) return found;
  }
  return (
    describeSends(ledger) ??
    describeQueries(sender, facts) ??
    describeHeld(ledger, facts) ??
    say('idle', 'good', 'Nothing waits to be sent now.')
  );
}

/** A warning only: nothing waits to be sent. */
function describeQueries(sender: ObservedWorker | undefined, { gateway }: HeadlineFacts): Headline | undefined {
  if (sender?.pollError !== undefined) {
    const name = sender.pollErrorCode === GATEWAY_DOWN ? 'gatewayDown' : 'pollsFail';
    return say(name, 'warn', `The last status poll failed: ${sender.pollError}.`);
  }
  if (gateway?.failure === undefined) return undefined;
  const name = gateway.failureCode === GATEWAY_DOWN ? 'gatewayDown' : 'queriesFail';
  return say(name, 'warn', `The last query failed: ${gateway.failure}.`);
}

/** Never `good`: someone may wait for this money. */
function describeHeld({ held, platformId }: LedgerObservation, facts: HeadlineFacts): Headline | undefined {
  if (held === 0) return undefined;
  const { heldSums = [], gateway, firstHeld } = facts;
  const sums = heldSums.map(({ amount, paymentId }) => formatMoney(amount, paymentId, gateway?.currencies ?? []));
  const money = sums.length === 0 ? '' : ` (${sums.join(', ')})`;
  const { rule, message } = firstHeld?.held ?? {};
  const why =
    message === undefined ? '' : ` The first, ${rule === undefined ? '' : `by the rule ${rule}, `}because: ${message}`;
  const detail = `${formatCount(held, 'payout')}${money}, and nothing else waits to be sent.${why}`;
  return say('holds', 'warn', detail, formatCommand({ name: 'list', args: ['--state', 'held'] }, platformId));
}

export function findSender({ life, workers }: LedgerObservation): ObservedWorker | undefined {
  return life.kind === 'none' ? undefined : senderOf(life.owner, workers);
}

const OBSTACLES: readonly FindObstacle[] = [
  function writeRefusal({ writeRefusal }) {
    if (writeRefusal === undefined) return undefined;
    return say('redisRefused', 'bad', `Redis refuses writes: ${writeRefusal.reason}. ${writeRefusal.action}`);
  },
  function objections({ objections }) {
    return objections === 0 ? undefined : say('mismatch', 'bad');
  },
  function pause({ pausedReason }) {
    return pausedReason === undefined ? undefined : say('paused', 'bad');
  },
  function noSender({ life, workers }) {
    if (life.kind !== 'none') return undefined;
    const standby = workers.find(({ silentMs }) => silentMs < WORKER_SILENT_AFTER_MS);
    if (standby === undefined) {
      return say('noWorker', 'bad', 'No worker process holds the sender lease: nothing is sent. Start one.', START);
    }
    if (standby.reason !== undefined) return refusedBy(standby);
    return say('noSender', 'warn', `${standby.name} stands by to take over.`);
  },
  function silent({ life, workers }, sender) {
    if (life.kind !== 'silent') return undefined;
    const problem = `No heartbeat for ${formatDuration(life.silentMs)}: it has ended or hangs, and nothing is sent.`;
    const standby = workers.find(
      ({ silentMs, reason, name }) =>
        silentMs < WORKER_SILENT_AFTER_MS && reason === undefined && name !== sender?.name,
    );
    if (standby !== undefined) return say('silent', 'bad', `${problem} ${standby.name} stands by to take over.`);
    const refusing = workers.find(({ silentMs, reason }) => silentMs < WORKER_SILENT_AFTER_MS && reason !== undefined);
    if (refusing !== undefined) return refusedBy(refusing);
    return say('silent', 'bad', `${problem} No standby is known: start a worker.`, START);
  },
  function refused(_, sender) {
    return sender?.reason === undefined ? undefined : refusedBy(sender);
  },
  function attempts({ wallNow }, sender) {
    const { lastError, lastErrorCode, failedAttempts = 1, nextRetryAt } = sender ?? {};
    if (lastError === undefined) return undefined;
    const retry = nextRetryAt === undefined ? '' : ` Next try ${formatIn(nextRetryAt - wallNow)}.`;
    const isGateway = lastErrorCode === GATEWAY_DOWN;
    const attempts = failedAttempts === 1 ? 'The last attempt' : `The last ${failedAttempts} attempts`;
    const detail = `${attempts} ended before anything was sent: ${lastError}.${retry}`;
    const tone = isGateway && failedAttempts < FAILURES ? 'warn' : 'bad';
    const headline = lastErrorCode === JOURNAL_DISK ? 'disk' : isGateway ? 'gatewayDown' : 'sendsFail';
    return say(headline, tone, detail);
  },
  function polls(_, sender) {
    const { pollError, pollErrorCode, failedPolls = FAILURES } = sender ?? {};
    if (pollError === undefined || pollErrorCode !== GATEWAY_DOWN || failedPolls < FAILURES) return undefined;
    const polls = failedPolls === FAILURES ? 'The last status polls' : `The last ${failedPolls} status polls`;
    return say('gatewayDown', 'bad', `${polls} failed: ${pollError}.`);
  },
  function unanswered({ wallNow }, sender) {
    if (sender?.noResponse === undefined) return undefined;
    const leftMs = (sender.holdOffUntil ?? 0) - wallNow;
    const next = leftMs > 0 ? ` The next send may begin ${formatIn(leftMs)}.` : '';
    const detail = `The last send had none that can be trusted, so its payout is unknown.${next}`;
    return say('noResponse', 'bad', detail);
  },
  function holdOff({ wallNow }, sender) {
    const leftMs = (sender?.holdOffUntil ?? 0) - wallNow;
    if (leftMs <= 0) return undefined;
    const detail = 'The wait after a takeover: a request of the sender before may still be on its way.';
    return { tone: 'warn', headline: `First send ${formatIn(leftMs)}`, detail };
  },
];

function refusedBy({ name, reason = '', cause }: ObservedWorker): Headline {
  const headline = cause === 'disk' ? 'disk' : cause === 'redis' ? 'redisRefused' : 'refused';
  return say(headline, 'bad', `${name}: ${reason}`);
}

/** Undefined if nothing waits to be sent. */
function describeSends(ledger: LedgerObservation): Headline | undefined {
  const { life, due, sending, sinceSendMs, watchedMs, readyMs } = ledger;
  if (life.kind === 'checking') return say('checking', 'warn', 'Waiting for the next heartbeat.');
  const idleMs = Math.min(sinceSendMs ?? watchedMs, readyMs);
  if (sending > 0 && idleMs > RESPONSE_SLOW_MS) {
    const detail = `The gateway has not responded to the last send for ${formatDuration(idleMs)}.`;
    return say('gatewaySlow', 'warn', detail);
  }
  if (due + sending === 0) return undefined;
  if (idleMs < STANDS_STILL_AFTER_MS) return say('sending', 'good');
  const detail = `${formatCount(due, 'payout')} could be sent, but none was for ${formatDuration(idleMs)}.`;
  return say('standsStill', 'bad', detail, formatCommand({ name: 'doctor', args: [] }, ledger.platformId));
}

/** A near moment, such as `in 7 s`. @param ms - until then; a past one is now */
function formatIn(ms: number): string {
  return ms < 1_000 ? 'now' : `in ${formatDuration(ms)}`;
}
