import { formatAmount, formatCount, formatDuration, formatMoney, formatMs, formatTimeUtc } from '../base/format.js';
import type { Payout } from '../ledger/payout.js';
import type { GatewayFacts } from '../ledger/reads/gateway-facts.js';
import type { CurrencySum } from '../ledger/reads/statistics.js';
import { isOfBalance, stopSignOf } from '../gateway/gateway.js';
import type { BalanceCover } from '../ledger/reads/balance-cover.js';
import type { HeldCount } from '../ledger/reads/policy-report.js';
import type { AccountStats } from '../ledger/reads/account-stats.js';
import { NOTIFICATIONS_LATE_MS } from '../ledger/reads/state-events.js';
import { RESPONSE_SLOW_MS, senderOf } from '../ledger/reads/workers.js';
import { listDrops } from '../ledger/reads/reconciliation.js';
import { describeEvidence } from './describe-look-up.js';
import { type Command, formatCommand } from './next-steps.js';
import { headlineOf, STOPS } from './stops.js';
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

/** The words of each headline, and its runbook; those of a stop are in {@link STOPS}. */
export const HEADLINES = {
  sending: ['Sending'],
  idle: ['Idle'],
  checking: ['Checking'],
  redisDown: headlineOf(STOPS.redisDown),
  unreadable: ['Redis altered', 'redis-altered'],
  mismatch: headlineOf(STOPS.objection),
  otherGateway: headlineOf(STOPS.otherGateway),
  balanceFell: ['Balance fell', 'balance-fell'],
  paidLate: ['Paid late', 'paid-late'],
  otherPayment: ['Another payment', 'other-payment'],
  tampering: ['Tampering', 'tampering'],
  tooClose: ['Sent too close', 'sent-too-close'],
  paused: headlineOf(STOPS.pause),
  pauseKept: headlineOf(STOPS.keptPause),
  ipNotListed: ['Paused: IP address not listed', 'ip-address'],
  noPermission: ['Paused: no permission', 'ip-address'],
  balanceLow: ['Balance too low', 'balance-low'],
  noWorker: ['No worker', 'worker-missing'],
  noSender: ['Waiting for a sender', 'worker-missing'],
  silent: headlineOf(STOPS.lease),
  refused: headlineOf(STOPS.journalRefused),
  disk: headlineOf(STOPS.journalFull),
  redisRefused: headlineOf(STOPS.redisRefuses),
  replicasMissing: headlineOf(STOPS.replicas),
  gatewayDown: headlineOf(STOPS.gatewayDown),
  gatewaySlow: ['Gateway slow', 'gateway'],
  noResponse: headlineOf(STOPS.noResponse),
  queriesFail: ['Gateway query fails', 'gateway'],
  pollsFail: ['Polling fails', 'gateway'],
  sendsFail: headlineOf(STOPS.clock),
  standsStill: headlineOf(STOPS.queue),
  unknown: ['Unknown payouts', 'unknown'],
  approvals: ['Waits for approval', 'held'],
  holds: ['Holds payouts', 'held'],
  rejected: ['Rejected payouts', 'rejected'],
  stuck: ['Stuck in progress', 'stuck'],
  notificationsLate: ['Notifications late', 'notifications-late'],
  otherVersion: headlineOf(STOPS.otherVersion),
} as const satisfies Readonly<Record<string, readonly [words: string, runbook?: string]>>;

type HeadlineName = keyof typeof HEADLINES;

const DOCTOR: Command = { name: 'doctor', args: [] };
const ASK_GATEWAY: Command = { name: 'gateway balance', args: [] };
const LIST_UNKNOWN: Command = { name: 'list', args: ['--state', 'unknown'] };

/** The first command for the account. That of a mismatch or a pause is in the advice. */
const COMMANDS: Partial<Readonly<Record<HeadlineName, Command>>> = {
  balanceFell: { name: 'pause', args: ['--reason', 'balance fell'] },
  paidLate: { name: 'events', args: [] },
  otherPayment: { name: 'events', args: [] },
  tampering: { name: 'events', args: [] },
  tooClose: { name: 'pause', args: ['--reason', 'sent too close'] },
  refused: DOCTOR,
  otherGateway: DOCTOR,
  pauseKept: { name: 'events', args: [] },
  disk: DOCTOR,
  redisRefused: DOCTOR,
  replicasMissing: DOCTOR,
  unreadable: DOCTOR,
  sendsFail: DOCTOR,
  standsStill: DOCTOR,
  gatewayDown: ASK_GATEWAY,
  gatewaySlow: ASK_GATEWAY,
  queriesFail: ASK_GATEWAY,
  pollsFail: ASK_GATEWAY,
  noResponse: LIST_UNKNOWN,
  unknown: LIST_UNKNOWN,
  balanceLow: ASK_GATEWAY,
  ipNotListed: ASK_GATEWAY,
  noPermission: ASK_GATEWAY,
  approvals: { name: 'approvals', args: [] },
  holds: { name: 'list', args: ['--state', 'held'] },
  rejected: { name: 'list', args: ['--state', 'rejected'] },
  stuck: { name: 'list', args: ['--state', 'in_progress'] },
  notificationsLate: { name: 'events', args: [] },
};

/** @param own - the command, if {@link COMMANDS} has none */
function say(
  account: Pick<LedgerObservation, 'platformId'> | undefined,
  name: HeadlineName,
  tone: Headline['tone'],
  detail?: string,
  own?: string,
): Headline {
  const [headline, runbook]: readonly [string, string?] = HEADLINES[name];
  const first = COMMANDS[name];
  const command = first && account ? formatCommand(first, account.platformId) : own;
  return {
    ...{ tone, headline, detail },
    ...(command !== undefined && { command }),
    ...(runbook !== undefined && { runbook: `docs/runbooks/${runbook}.md` }),
  };
}

/** The headline of a ledger that this version cannot read. */
export function otherVersionHeadline({ message }: Error): Headline {
  return say(undefined, 'otherVersion', 'bad', message);
}

/** Longer than a slow response of the gateway. */
const STANDS_STILL_AFTER_MS = 15_000;

/**
 * What comes and goes with single calls of the gateway is said for this long after it ended, in ms: the words would
 * change every few seconds otherwise. A worse headline comes at once, and so does what people do.
 */
const SAID_FOR_MS = 60_000;

/** What costs money in one moment, such as a payment proved late, comes first for a day. */
const AT_RISK_FOR_MS = 24 * 60 * 60_000;

/** Fewer may fail because the gateway closed an idle connection. */
const FAILURES = 2;

const START = 'payouts worker';

/** An unreachable gateway. Any other failed attempt has its cause on this side. */
const GATEWAY_DOWN = 'GATEWAY_UNAVAILABLE';

/** The send journal cannot be written. */
const JOURNAL_DISK = 'JOURNAL_UNAVAILABLE';

type FindObstacle = (
  ledger: LedgerObservation,
  sender: ObservedWorker | undefined,
  facts: HeadlineFacts,
) => Headline | undefined;

/** Facts that are read less often than the account is watched. Without them the headline says less. */
export interface HeadlineFacts {
  /** Its last response: without sends there is no other sign of it. */
  readonly gateway?: Pick<
    GatewayFacts,
    'failure' | 'failureCode' | 'currencies' | 'lookUp' | 'lookUpAt' | 'lookUpMessage'
  >;
  readonly heldSums?: readonly CurrencySum[];
  /** The payout that has been held longest. */
  readonly firstHeld?: Pick<Payout, 'held'> | undefined;
  /** What the policy holds, by rule and verdict, as the sender last reported. */
  readonly heldBy?: readonly HeldCount[];
  /** The balance last read, beside what is queued. Empty if it is not known, or too old. */
  readonly covers?: readonly BalanceCover[];
  readonly stats?: Pick<AccountStats, 'rejected' | 'oldestAgeMs'>;
  /** How many payouts have been in progress for longer than STUCK_AFTER_MS. */
  readonly stuck?: number;
  /** Age of the oldest event that `payouts notify` has not handled, in ms. Undefined if it is not used. */
  readonly notificationLagMs?: number | undefined;
}

/**
 * Says in one line whether money moves. Of several obstacles, the first that an operator must resolve counts. The
 * dashboard, `payouts status`, `payouts doctor` and the health server all use it.
 */
export function accountHeadline({ redis, ledger }: Observation, facts: HeadlineFacts = {}): Headline {
  if (redis.kind === 'unavailable') {
    const detail = `For ${formatDuration(redis.sinceMs)}: ${redis.reason}. Workers that cannot reach it either send nothing meanwhile, and nothing is lost: check that it runs, and REDIS_URL.`;
    return say(ledger, 'redisDown', 'bad', detail, 'payouts doctor');
  }
  if (ledger === undefined) return say(ledger, 'checking', 'warn');
  const sender = findSender(ledger);
  for (const find of OBSTACLES) {
    const found = find(ledger, sender, facts);
    if (found !== undefined) return found;
  }
  return (
    describeQueries(ledger, sender, facts) ??
    describeEnded(ledger, sender, true) ??
    describeHeld(ledger, facts) ??
    describeLeft(ledger, facts) ??
    say(ledger, 'idle', 'good', 'Nothing waits to be sent now.')
  );
}

/** A warning only: nothing waits to be sent. */
function describeQueries(
  ledger: LedgerObservation,
  sender: ObservedWorker | undefined,
  { gateway }: HeadlineFacts,
): Headline | undefined {
  if (sender?.pollError !== undefined) {
    const name = sender.pollErrorCode === GATEWAY_DOWN ? 'gatewayDown' : 'pollsFail';
    return say(ledger, name, 'warn', `The last status poll failed: ${sender.pollError}.`);
  }
  if (gateway?.failure === undefined) return undefined;
  const name = gateway.failureCode === GATEWAY_DOWN ? 'gatewayDown' : 'queriesFail';
  return say(ledger, name, 'warn', `The last query failed: ${gateway.failure}.`);
}

/** @param isIdle - nothing waits to be sent */
function describeEnded(
  ledger: LedgerObservation,
  sender: ObservedWorker | undefined,
  isIdle: boolean,
): Headline | undefined {
  const { ended } = sender ?? {};
  if (ended === undefined || (ended.what === 'sends' && isIdle)) return undefined;
  const { what, error, code, count, at } = ended;
  const agoMs = Math.max(0, ledger.wallNow - at);
  if (agoMs >= SAID_FOR_MS || count < FAILURES) return undefined;
  // As while it lasts: a refused poll says nothing about sends.
  if (what === 'polls' && !isIdle && code !== GATEWAY_DOWN) return undefined;
  const name = findFailure(code, what === 'sends' ? 'sendsFail' : 'pollsFail');
  const which = what === 'sends' ? 'Attempts to send' : 'Status polls';
  const detail = `${which} failed until ${formatDuration(agoMs)} ago, and work again. The last: ${error}.`;
  return say(ledger, name, 'warn', detail);
}

function findFailure(code: string | undefined, otherwise: HeadlineName): HeadlineName {
  if (code === JOURNAL_DISK) return 'disk';
  return code === GATEWAY_DOWN ? 'gatewayDown' : otherwise;
}

/** Never `good`: someone may wait for this money. */
function describeHeld(ledger: LedgerObservation, facts: HeadlineFacts): Headline | undefined {
  const { held, platformId } = ledger;
  if (held === 0) return undefined;
  const { heldSums = [], gateway, firstHeld, heldBy = [] } = facts;
  const sums = heldSums.map(({ amount, paymentId }) => formatMoney(amount, paymentId, gateway?.currencies ?? []));
  const money = sums.length === 0 ? '' : ` (${sums.join(', ')})`;
  const counted = heldBy.reduce((sum, { count }) => sum + count, 0);
  const causes = heldBy.map((each) => describeCause(each, platformId));
  const list = formatCommand({ name: 'list', args: ['--state', 'held'] }, platformId);
  if (counted < held) causes.push(`${formatAmount(held - counted)} for another cause, see \`${list}\``);
  const { rule, message, needs } = firstHeld?.held ?? {};
  const missing = needs && `, needs ${formatCount(needs.persons, 'more approval')} by ${needs.by}`;
  const why =
    message === undefined
      ? ''
      : ` The first${missing ?? ''}, ${rule === undefined ? '' : `by the rule ${rule}, `}because: ${message}`;
  const each = heldBy.length === 0 ? '' : ` ${causes.join('; ')}.`;
  const detail = `${formatCount(held, 'payout')}${money}, and nothing else waits to be sent.${each}${why}`;
  return say(ledger, heldBy.some(({ reason }) => reason === 'approve') ? 'approvals' : 'holds', 'warn', detail);
}

/** What a person must decide or start, although nothing waits to be sent. */
function describeLeft(ledger: LedgerObservation, facts: HeadlineFacts): Headline | undefined {
  const { stats, stuck = 0, notificationLagMs = 0 } = facts;
  const forMs = (ms: number | null | undefined): string => formatDuration(ms ?? 0);
  if (stats !== undefined && stats.rejected > 0) {
    const detail = `The gateway refused ${formatCount(stats.rejected, 'payout')}, and paid nothing: retry or cancel each.`;
    return say(ledger, 'rejected', 'warn', detail);
  }
  if (stuck > 0) {
    const detail = `${formatCount(stuck, 'payout')} in progress for too long, the oldest for ${forMs(stats?.oldestAgeMs.in_progress)}: ask the gateway, and do not pay it again.`;
    return say(ledger, 'stuck', 'warn', detail);
  }
  if (notificationLagMs < NOTIFICATIONS_LATE_MS) return undefined;
  const detail = `The oldest event waits for ${forMs(notificationLagMs)}: \`payouts notify\` does not run, or its receiver fails. None is lost.`;
  return say(ledger, 'notificationsLate', 'warn', detail);
}

/** What ends each verdict of a rule. */
const CAUSES: Readonly<Record<string, readonly [text: string, command: Command]>> = {
  approve: ['need approval', { name: 'approvals', args: [] }],
  wait: ['wait until there is room or time', { name: 'policy usage', args: [] }],
  refuse: ['are refused: cancel them, or change the policy', { name: 'list', args: ['--state', 'held'] }],
};

function describeCause({ rule, reason, count }: HeldCount, platformId: number): string {
  const [text, command] = CAUSES[reason] ?? ['are held', { name: 'list', args: ['--state', 'held'] }];
  return `${formatAmount(count)} ${text} (rule ${rule}): \`${formatCommand(command, platformId)}\``;
}

/** @returns undefined if nothing says that it is too low */
function describeShortage({ covers = [], gateway }: HeadlineFacts): string | undefined {
  const short = covers.filter(({ isEnough }) => !isEnough);
  if (short.length === 0) return undefined;
  const parts = short.map(
    ({ currency, queued, balance }) =>
      `needs ${queued === undefined ? '?' : formatAmount(queued, currency)}, has ${formatAmount(balance, currency)}`,
  );
  const stale = gateway?.failure === undefined ? '' : ' The last query of the balance failed.';
  return `What is queued ${parts.join('; ')}: pay in.${stale}`;
}

export function findSender({ life, workers }: LedgerObservation): ObservedWorker | undefined {
  return life.kind === 'none' ? undefined : senderOf(life.owner, workers);
}

const OBSTACLES: readonly FindObstacle[] = [
  // First what may have cost money, whatever else stops the account.
  function objections(ledger) {
    return ledger.objections === 0 ? undefined : say(ledger, 'mismatch', 'bad');
  },
  function balanceFell(ledger) {
    const { drops = [], pausedReason, wallNow } = ledger;
    if (drops.length === 0) return undefined;
    const paused = pausedReason === undefined ? '' : ` Paused: ${pausedReason}. That does not stop a thief.`;
    const since = Math.min(...drops.map((drop) => drop.since ?? Infinity));
    const ago = since === Infinity ? '' : `, first noticed ${formatDuration(Math.max(0, wallNow - since))} ago`;
    const detail = `By ${listDrops(drops)} more than the payouts explain${ago}: someone else may use the gateway's key.${paused}`;
    return say(ledger, 'balanceFell', 'bad', detail);
  },
  function paidLate(ledger) {
    const { paidLate, wallNow } = ledger;
    if (paidLate === undefined || wallNow - paidLate.at > AT_RISK_FOR_MS) return undefined;
    const ago = formatDuration(Math.max(0, wallNow - paidLate.at));
    const detail = `${paidLate.payoutId} is possibly paid twice: ${ago} ago a payment was proved after it was settled or sent again.`;
    return say(ledger, 'paidLate', 'bad', detail);
  },
  function otherPayment(ledger) {
    const { otherPayment, wallNow } = ledger;
    if (otherPayment === undefined || wallNow - otherPayment.at > AT_RISK_FOR_MS) return undefined;
    const ago = formatDuration(Math.max(0, wallNow - otherPayment.at));
    const detail = `${otherPayment.payoutId} is unknown, and ${ago} ago the gateway had a payment with its order id of another currency, address or amount. That should never be.`;
    return say(ledger, 'otherPayment', 'bad', detail);
  },
  function tampering(ledger) {
    const { tampering, wallNow } = ledger;
    if (tampering === undefined || wallNow - tampering.at > AT_RISK_FOR_MS) return undefined;
    const ago = formatDuration(Math.max(0, wallNow - tampering.at));
    const detail = `${tampering.payoutId} was held ${ago} ago, because someone had altered it in Redis. Nothing that was altered is sent.`;
    return say(ledger, 'tampering', 'bad', detail);
  },
  /** A standby too: it may have been the sender. */
  function tooClose(ledger) {
    const close = ledger.workers.find(({ closeAt = -Infinity }) => ledger.wallNow - closeAt <= AT_RISK_FOR_MS);
    if (close?.closeAt === undefined) return undefined;
    const ago = formatDuration(Math.max(0, ledger.wallNow - close.closeAt));
    const detail = `${close.name} wrote two payouts ${formatMs(close.closeMs ?? 0)} apart, ${ago} ago. The gateway may block the account: stop every worker.`;
    return say(ledger, 'tooClose', 'bad', detail);
  },
  function keptPause(ledger, sender) {
    if (sender?.pauseKept === undefined || ledger.due === 0) return undefined;
    const detail = 'A pause is in the send journal, and gone from Redis. No operator signed that it ends.';
    return say(ledger, 'pauseKept', 'bad', detail);
  },
  function writeRefusal(ledger) {
    if (ledger.writeRefusal === undefined) return undefined;
    const { reason, action, missing = [] } = ledger.writeRefusal;
    const headline = missing.length === 0 ? 'redisRefused' : 'replicasMissing';
    // A worker's report that Redis took before it began to refuse.
    const reported = new Map(
      ledger.workers.flatMap((worker) => worker.missing ?? []).map(({ name, since }) => [name, since]),
    );
    const names = missing.map((name) => {
      const since = reported.get(name);
      return ` ${name} is missing${since === undefined ? '' : `, since ${formatTimeUtc(since)} at the latest`}.`;
    });
    return say(ledger, headline, 'bad', `Redis refuses writes: ${reason}.${names.join('')} ${action}`);
  },
  function unreadable(ledger) {
    const { unreadable = [] } = ledger;
    if (unreadable.length === 0) return undefined;
    const detail = `Someone has altered keys of the account, and no script can read them: ${unreadable.join(', ')}. Nothing is sent.`;
    return say(ledger, 'unreadable', 'bad', detail);
  },
  function pause(ledger, _, facts) {
    const { pausedReason } = ledger;
    if (pausedReason === undefined) return undefined;
    const sign = stopSignOf(pausedReason);
    if (sign === 'ip') return say(ledger, 'ipNotListed', 'bad');
    if (sign === 'permission') return say(ledger, 'noPermission', 'bad');
    if (!isOfBalance(pausedReason)) return say(ledger, 'paused', 'bad');
    const has = facts.covers?.map(({ currency, balance }) => formatAmount(balance, currency)).join(', ') ?? '';
    const known = describeShortage(facts) ?? (has === '' ? 'The gateway says so.' : `The gateway has ${has}.`);
    return say(ledger, 'balanceLow', 'bad', `Paused: ${pausedReason}. ${known} Pay in before you resume.`);
  },
  function noSender(ledger) {
    if (ledger.life.kind !== 'none') return undefined;
    const standby = ledger.workers.find(({ silentMs }) => silentMs < WORKER_SILENT_AFTER_MS);
    if (standby === undefined) {
      const problem = 'No worker process holds the sender lease: nothing is sent.';
      return say(ledger, 'noWorker', 'bad', isEmpty(ledger) ? `${problem} ${EMPTY}` : problem, START);
    }
    if (standby.reason !== undefined) return refusedBy(ledger, standby);
    return say(ledger, 'noSender', 'warn', `${standby.name} stands by to take over.`);
  },
  function silent(ledger, sender) {
    const { life, workers } = ledger;
    if (life.kind !== 'silent') return undefined;
    const problem = `No heartbeat for ${formatDuration(life.silentMs)}: it has ended or hangs, and nothing is sent.`;
    const alive = workers.filter(({ silentMs }) => silentMs < WORKER_SILENT_AFTER_MS);
    // The last report of a sender that hangs looks fresh for a while.
    const standby = alive.find(({ reason, name }) => reason === undefined && name !== sender?.name);
    if (standby !== undefined) {
      return say(ledger, 'silent', 'bad', `${problem} ${standby.name} stands by to take over.`);
    }
    const refusing = alive.find(({ reason }) => reason !== undefined);
    if (refusing !== undefined) return refusedBy(ledger, refusing);
    return say(ledger, 'silent', 'bad', `${problem} No standby is known.`, START);
  },
  function refused(ledger, sender) {
    return sender?.reason === undefined ? undefined : refusedBy(ledger, sender);
  },
  function attempts(ledger, sender) {
    const { lastError, lastErrorCode, failedAttempts = 1, nextRetryAt } = sender ?? {};
    if (lastError === undefined) return undefined;
    const retry = nextRetryAt === undefined ? '' : ` Next try ${formatIn(nextRetryAt - ledger.wallNow)}.`;
    const isGateway = lastErrorCode === GATEWAY_DOWN;
    const attempts = failedAttempts === 1 ? 'The last attempt' : `The last ${failedAttempts} attempts`;
    const detail = `${attempts} ended before anything was sent: ${lastError}.${retry}`;
    const tone = isGateway && failedAttempts < FAILURES ? 'warn' : 'bad';
    return say(ledger, findFailure(lastErrorCode, 'sendsFail'), tone, detail);
  },
  function polls(ledger, sender) {
    const { pollError, pollErrorCode, failedPolls = FAILURES } = sender ?? {};
    if (pollError === undefined || pollErrorCode !== GATEWAY_DOWN || failedPolls < FAILURES) return undefined;
    const polls = failedPolls === FAILURES ? 'The last status polls' : `The last ${failedPolls} status polls`;
    return say(ledger, 'gatewayDown', 'bad', `${polls} failed: ${pollError}.`);
  },
  function unanswered(ledger, sender) {
    if (sender?.noResponse === undefined) return undefined;
    const leftMs = (sender.holdOffUntil ?? 0) - ledger.wallNow;
    const next = leftMs > 0 ? ` The next send may begin ${formatIn(leftMs)}.` : '';
    const detail = `The last send had none that can be trusted, so its payout is unknown.${next}`;
    return say(ledger, 'noResponse', 'bad', detail);
  },
  function holdOff({ wallNow }, sender) {
    const leftMs = (sender?.holdOffUntil ?? 0) - wallNow;
    if (leftMs <= 0) return undefined;
    const detail = 'The wait after a takeover: a request of the sender before may still be on its way.';
    return { tone: 'warn', headline: `First send ${formatIn(leftMs)}`, detail };
  },
  function checking(ledger) {
    return ledger.life.kind === 'checking'
      ? say(ledger, 'checking', 'warn', 'Waiting for the next heartbeat.')
      : undefined;
  },
  function slow(ledger, sender) {
    const idleMs = idleOf(ledger);
    if (ledger.sending > 0 && idleMs > RESPONSE_SLOW_MS) {
      const detail = `The gateway has not responded to the last send for ${formatDuration(idleMs)}.`;
      return say(ledger, 'gatewaySlow', 'warn', detail);
    }
    const { slowAt, slowMs = 0 } = sender ?? {};
    if (ledger.due + ledger.sending === 0 || slowAt === undefined) return undefined;
    const agoMs = Math.max(0, ledger.wallNow - slowAt);
    if (agoMs >= SAID_FOR_MS || idleMs >= STANDS_STILL_AFTER_MS) return undefined;
    const detail = `A response ${formatDuration(agoMs)} ago took ${formatDuration(slowMs)}. Others are sent, more slowly.`;
    return say(ledger, 'gatewaySlow', 'warn', detail);
  },
  function standsStill(ledger) {
    const idleMs = idleOf(ledger);
    if (ledger.due === 0 || idleMs < STANDS_STILL_AFTER_MS) return undefined;
    const detail = `${formatCount(ledger.due, 'payout')} could be sent, but none was for ${formatDuration(idleMs)}.`;
    return say(ledger, 'standsStill', 'bad', detail);
  },
  /** Others are sent, but these are money at risk. */
  function unknown(ledger, _, { gateway = {} }) {
    if (ledger.unknown === 0) return undefined;
    const evidence = describeEvidence(gateway);
    const asks = evidence === undefined ? '' : ` The worker asks it for each by order id. ${evidence}`;
    const detail = `${formatCount(ledger.unknown, 'payout')} may or may not have been sent, and only the gateway knows. Others are sent meanwhile.${asks}`;
    return say(ledger, 'unknown', 'warn', detail);
  },
  function shortage(ledger, _, facts) {
    const detail = describeShortage(facts);
    return detail === undefined || ledger.due + ledger.sending === 0
      ? undefined
      : say(ledger, 'balanceLow', 'warn', `${detail} Until then the gateway rejects what it cannot pay.`);
  },
  function ended(ledger, sender) {
    return ledger.due + ledger.sending === 0 ? undefined : describeEnded(ledger, sender, false);
  },
  function sending(ledger) {
    return ledger.due + ledger.sending === 0 ? undefined : say(ledger, 'sending', 'good');
  },
];

const HEADLINE_OF_CAUSE: Readonly<Record<string, HeadlineName>> = {
  disk: 'disk',
  redis: 'redisRefused',
  replicas: 'replicasMissing',
  gateway: 'otherGateway',
};

function refusedBy(ledger: LedgerObservation, { name, reason = '', cause }: ObservedWorker): Headline {
  const headline = HEADLINE_OF_CAUSE[cause ?? ''] ?? 'refused';
  return say(ledger, headline, 'bad', `${name}: ${reason}`);
}

/** Zeros look well, and may be those of another Redis. */
const EMPTY =
  'This Redis has no payout to send and never had a send of the account: check REDIS_URL and the number of the account.';

function isEmpty({ sends, due, sending, held, unknown }: LedgerObservation): boolean {
  return sends + due + sending + held + unknown === 0;
}

/** How long a live sender with payouts to send has begun no send. */
function idleOf({ sinceSendMs, watchedMs, readyMs }: LedgerObservation): number {
  return Math.min(sinceSendMs ?? watchedMs, readyMs);
}

/** A near moment, such as `in 7 s`. @param ms - until then; a past one is now */
function formatIn(ms: number): string {
  return ms < 1_000 ? 'now' : `in ${formatDuration(ms)}`;
}
