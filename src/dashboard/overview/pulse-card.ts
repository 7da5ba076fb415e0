import { formatDuration } from '../../base/format.js';
import type { AccountStats } from '../../ledger/reads/account-stats.js';
import { type AccountAdvice, adviseAccount } from '../../operator/account-advice.js';
import { html, type Html } from '../layout/html.js';
import type { DashboardSite } from '../layout/layout.js';
import { commandLine, dataList, utcTime } from '../layout/pieces.js';
import { runbookLink } from '../runbooks.js';
import type { LedgerObservation, Observation, RedisLife } from '../../operator/account-poller.js';
import { findSender, type Headline } from '../../operator/account-headline.js';

interface PulseFacts {
  readonly stats: AccountStats;
  readonly isSigned: boolean;
  readonly lastSendAgoMs: number | undefined;
  readonly pace: readonly string[];
}

/**
 * Whether money moves, the evidence, and what stops it until an operator acts. The runbook comes before the evidence,
 * which may be long: on a phone the link must be on the first screen.
 * @param facts - undefined if Redis does not respond
 */
export function pulseCard(
  site: DashboardSite,
  pulse: Headline,
  { redis, ledger }: Observation,
  facts: PulseFacts | undefined,
): Html {
  const detail = pulse.detail ?? (pulse.tone === 'good' ? facts?.pace.join(' · ') : undefined);
  const trouble = pulse.tone === 'good' ? undefined : html`class="trouble"`;
  return html`<section class="pulse ${pulse.tone}" aria-label="Status">
    <h1 ${trouble} aria-live="polite"><span class="dot" aria-hidden="true"></span>${pulse.headline}</h1>
    ${pulse.runbook !== undefined && runbookLink(site, pulse.runbook)}
    ${detail !== undefined && html`<p class="pulse-detail"><bdi>${detail}</bdi></p>`}
    ${pulse.command === undefined ? undefined : commandLine(pulse.command)}
    ${facts === undefined ? undefined : adviseAccount(facts.stats, facts).map((advice) => adviceView(advice, facts.stats, site.now))}
    ${ledger === undefined ? undefined : vitals(pulse, ledger, { lastSendAgoMs: facts?.lastSendAgoMs, redis })}
  </section>`;
}

function adviceView({ kind, problem, first, command }: AccountAdvice, stats: AccountStats, wallNow: number): Html {
  const isPause = kind === 'pause';
  return html`<div class="advice" role="alert">
    <p>
      <strong><bdi>${isPause ? (stats.pausedReason ?? 'no reason given') : problem}</bdi></strong>
    </p>
    ${isPause ? pausedBy(stats, wallNow) : undefined}
    <p class="quiet">Nothing is sent until an operator resolves this. ${first}</p>
    ${commandLine(command)}
  </div>`;
}

function pausedBy({ pausedBy: by, pausedAt }: AccountStats, wallNow: number): Html {
  return html`<p class="quiet">
    by <bdi>${by ?? 'unknown'}</bdi>, since
    ${pausedAt === null ? 'unknown' : html`${utcTime(pausedAt)}, for ${formatDuration(Math.max(0, wallNow - Date.parse(pausedAt)))}`}.
  </p>`;
}

/** The known facts; without Redis, those of its last reply. */
function vitals(
  pulse: Headline,
  ledger: LedgerObservation,
  { lastSendAgoMs, redis }: { readonly lastSendAgoMs: number | undefined; readonly redis: RedisLife },
): Html {
  const sinceSendMs = ledger.sinceSendMs ?? lastSendAgoMs;
  const { lastError } = findSender(ledger) ?? {};
  const isShown = lastError !== undefined && pulse.detail?.includes(lastError) === true;
  const isCurrent = redis.kind === 'up';
  const rows: Parameters<typeof dataList>[0] = [
    ['Last reply of Redis', isCurrent ? undefined : `${formatDuration(ledger.ageMs)} ago; this was known then:`],
    ['Sender', describeSender(ledger)],
    [
      'Last send',
      sinceSendMs === undefined ? 'none is known' : `${formatDuration(sinceSendMs)} ${isCurrent ? 'ago' : 'before'}`,
    ],
    ['Last attempt', isShown ? undefined : describeAttempt(ledger)],
  ];
  return dataList(rows, 'vitals');
}

function describeSender({ life }: LedgerObservation): Html | string {
  if (life.kind === 'none') return 'no process holds the lease';
  const heartbeat = {
    checking: 'waiting for a heartbeat',
    alive: 'alive',
    silent: `no heartbeat for ${formatDuration(life.kind === 'silent' ? life.silentMs : 0)}`,
  }[life.kind];
  return html`<bdi
    ><span class="mono">${life.owner}</span>, ${heartbeat} <span class="quiet">(epoch ${life.epoch})</span></bdi
  >`;
}

/** Nothing without an attempt: "no error" would sound well under a block. */
function describeAttempt(ledger: LedgerObservation): string | undefined {
  const sender = findSender(ledger);
  if (sender === undefined) return undefined;
  const { lastError, nextRetryAt } = sender;
  const isAlive = ledger.life.kind === 'alive';
  if (lastError === undefined) return ledger.sending === 0 ? undefined : isAlive ? 'under way' : 'no result is known';
  if (!isAlive || ledger.pausedReason !== undefined || ledger.objections > 0) return `failed: ${lastError}`;
  const inMs = (nextRetryAt ?? 0) - ledger.wallNow;
  return `failed: ${lastError}; next try ${inMs < 1_000 ? 'now' : `in ${formatDuration(inMs)}`}`;
}
