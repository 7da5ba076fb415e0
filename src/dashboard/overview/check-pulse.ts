import { formatCount, formatDuration } from '../../base/format.js';
import type { GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { senderOf } from '../../ledger/reads/workers.js';
import {
  type LedgerObservation,
  type Observation,
  type ObservedWorker,
  WORKER_SILENT_AFTER_MS,
} from './account-poller.js';

export interface Pulse {
  /** `bad`: nothing is sent, and an operator must know; `warn`: nothing is sent just now. */
  readonly tone: 'good' | 'warn' | 'bad';
  /** Also the title of the browser's tab. */
  readonly headline: string;
  readonly detail: string | undefined;
  readonly command?: string;
}

/** Longer than a slow response of the gateway. */
const STANDS_STILL_AFTER_MS = 15_000;

/** A response takes a few seconds at most. */
const RESPONSE_SLOW_MS = 6_000;

const IDLE = 'Idle';

const WORKER_COMMAND = 'payouts worker';

/** An unreachable gateway. Any other failed attempt has its cause on this side. */
const GATEWAY_DOWN = 'GATEWAY_UNAVAILABLE';

type PulseCheck = (ledger: LedgerObservation, sender: ObservedWorker | undefined) => Pulse | undefined;

/**
 * Decides whether money moves. Of several obstacles, the first that an operator must resolve counts.
 * @param gateway - its last response: without sends there is no other sign of it
 */
export function checkPulse(
  { redis, ledger }: Observation,
  gateway?: Pick<GatewayFacts, 'failure' | 'failureCode'>,
): Pulse {
  if (redis.kind === 'unavailable') {
    const detail = `For ${formatDuration(redis.sinceMs)}: ${redis.reason}. Workers that cannot reach it either send nothing meanwhile, and nothing is lost: check that it runs, and REDIS_URL.`;
    return { tone: 'bad', headline: 'Redis does not respond', detail };
  }
  if (ledger === undefined) return { tone: 'warn', headline: 'Checking', detail: undefined };
  const sender = findSender(ledger);
  for (const check of PULSE_CHECKS) {
    const pulse = check(ledger, sender);
    if (pulse !== undefined) return pulse;
  }
  const pulse = checkSends(ledger);
  if (pulse.headline !== IDLE) return pulse;
  if (sender?.pollError !== undefined)
    return describeFailedQuery('status poll', sender.pollError, sender.pollErrorCode);
  return gateway?.failure === undefined ? pulse : describeFailedQuery('query', gateway.failure, gateway.failureCode);
}

/** A wrong response is no reason for an alarm: the gateway may still take withdrawals. */
function describeFailedQuery(what: 'query' | 'status poll', failure: string, code: string | undefined): Pulse {
  const detail = `The last ${what} failed: ${failure}.`;
  if (code === GATEWAY_DOWN) return { tone: 'bad', headline: 'Gateway does not respond', detail };
  return { tone: 'warn', headline: what === 'query' ? 'Gateway query fails' : 'Polling fails', detail };
}

export function findSender({ life, workers }: LedgerObservation): ObservedWorker | undefined {
  return life.kind === 'none' ? undefined : senderOf(life.owner, workers);
}

const PULSE_CHECKS: readonly PulseCheck[] = [
  function objections({ objections }) {
    if (objections === 0) return undefined;
    return { tone: 'bad', headline: 'Stopped: ledger mismatch', detail: undefined };
  },
  function pause({ pausedReason }) {
    if (pausedReason === undefined) return undefined;
    return { tone: 'bad', headline: 'Paused', detail: undefined };
  },
  function noSender({ life, workers }) {
    if (life.kind !== 'none') return undefined;
    const standby = workers.find(({ silentMs }) => silentMs < WORKER_SILENT_AFTER_MS);
    if (standby === undefined) {
      const detail = 'No worker process holds the sender lease: nothing is sent. Start one.';
      return { tone: 'bad', headline: 'No worker', detail, command: WORKER_COMMAND };
    }
    if (standby.reason !== undefined) return refusedBy(standby);
    return { tone: 'warn', headline: 'Waiting for a sender', detail: `${standby.name} stands by to take over.` };
  },
  function silent({ life, workers }, sender) {
    if (life.kind !== 'silent') return undefined;
    const headline = 'Sender without heartbeat';
    const problem = `No heartbeat for ${formatDuration(life.silentMs)}: it has ended or hangs, and nothing is sent.`;
    const standby = workers.find(
      ({ silentMs, reason, name }) =>
        silentMs < WORKER_SILENT_AFTER_MS && reason === undefined && name !== sender?.name,
    );
    if (standby !== undefined)
      return { tone: 'bad', headline, detail: `${problem} ${standby.name} stands by to take over.` };
    const refusing = workers.find(({ silentMs, reason }) => silentMs < WORKER_SILENT_AFTER_MS && reason !== undefined);
    if (refusing !== undefined && refusing.name !== sender?.name) return refusedBy(refusing);
    return {
      tone: 'bad',
      headline,
      detail: `${problem} No standby is known: start a worker.`,
      command: WORKER_COMMAND,
    };
  },
  function refused(_, sender) {
    return sender?.reason === undefined ? undefined : refusedBy(sender);
  },
  function attempts({ wallNow }, sender) {
    const { lastError, lastErrorCode, failedAttempts = 1, nextRetryAt } = sender ?? {};
    if (lastError === undefined) return undefined;
    const retry = nextRetryAt === undefined ? '' : ` Next try ${formatIn(nextRetryAt - wallNow)}.`;
    const headline = lastErrorCode === GATEWAY_DOWN ? 'Gateway unreachable' : 'Sending fails';
    const attempts = failedAttempts === 1 ? 'The last attempt' : `The last ${failedAttempts} attempts`;
    return { tone: 'bad', headline, detail: `${attempts} ended before anything was sent: ${lastError}.${retry}` };
  },
  function polls(_, sender) {
    const { pollError, pollErrorCode } = sender ?? {};
    if (pollError === undefined || pollErrorCode !== GATEWAY_DOWN) return undefined;
    return describeFailedQuery('status poll', pollError, pollErrorCode);
  },
  function unanswered({ wallNow }, sender) {
    if (sender?.noResponse === undefined) return undefined;
    const leftMs = (sender.holdOffUntil ?? 0) - wallNow;
    const next = leftMs > 0 ? ` The next send may begin ${formatIn(leftMs)}.` : '';
    const detail = `The last send had none that can be trusted, so its payout is unknown.${next}`;
    return { tone: 'bad', headline: 'No response from the gateway', detail };
  },
  function holdOff({ wallNow }, sender) {
    const leftMs = (sender?.holdOffUntil ?? 0) - wallNow;
    if (leftMs <= 0) return undefined;
    const detail = 'The wait after a takeover: a request of the sender before may still be on its way.';
    return { tone: 'warn', headline: `First send ${formatIn(leftMs)}`, detail };
  },
];

function refusedBy({ name, reason = '' }: ObservedWorker): Pulse {
  return { tone: 'bad', headline: 'The worker refuses to send', detail: `${name}: ${reason}` };
}

function checkSends({ life, due, sending, sinceSendMs, watchedMs, readyMs }: LedgerObservation): Pulse {
  if (life.kind === 'checking')
    return { tone: 'warn', headline: 'Checking', detail: 'Waiting for the next heartbeat.' };
  const idleMs = Math.min(sinceSendMs ?? watchedMs, readyMs);
  if (sending > 0 && idleMs > RESPONSE_SLOW_MS) {
    const detail = `The gateway has not responded to the last send for ${formatDuration(idleMs)}.`;
    return { tone: 'warn', headline: 'Waiting for the gateway', detail };
  }
  if (due + sending === 0) return { tone: 'good', headline: IDLE, detail: 'Nothing waits to be sent now.' };
  if (idleMs < STANDS_STILL_AFTER_MS) return { tone: 'good', headline: 'Sending', detail: undefined };
  const detail = `${formatCount(due, 'payout')} could be sent, but none was for ${formatDuration(idleMs)}: run payouts doctor.`;
  return { tone: 'bad', headline: 'Nothing is sent', detail };
}

/** A near moment, such as `in 7 s`. @param ms - until then; a past one is now */
function formatIn(ms: number): string {
  return ms < 1_000 ? 'now' : `in ${formatDuration(ms)}`;
}
