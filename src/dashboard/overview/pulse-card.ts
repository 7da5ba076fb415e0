import { formatDuration, formatTimeUtc } from '../../format.js';
import type { AccountStats } from '../../ledger/account-stats.js';
import { adviseAccount } from '../../operator/account-advice.js';
import { commandLine } from '../command-line.js';
import { html, type Html } from '../html.js';
import type { LedgerObservation, Observation } from '../pulse/account-watch.js';
import { findSender, type Pulse } from '../pulse/judge-pulse.js';

/** Whether money moves, and what says so. */
export function pulseCard(pulse: Pulse, { redis, ledger }: Observation, lastSendAgoMs: number | undefined): Html {
  return html`<section class="pulse ${pulse.tone}" aria-label="Pulse">
    <h1 aria-live="polite"><span class="dot" aria-hidden="true"></span>${pulse.headline}</h1>
    ${pulse.detail === undefined ? undefined : html`<p class="pulse-detail"><bdi>${pulse.detail}</bdi></p>`}
    ${pulse.command === undefined ? undefined : commandLine(pulse.command)}
    ${ledger === undefined ? undefined : vitals(ledger, lastSendAgoMs, redis.kind === 'up')}
  </section>`;
}

/** What is known; where Redis does not respond, as of its last reply. */
function vitals(ledger: LedgerObservation, lastSendAgoMs: number | undefined, isCurrent: boolean): Html {
  const sender = findSender(ledger);
  const sinceSendMs = ledger.sinceSendMs ?? lastSendAgoMs;
  const rows: readonly (readonly [name: string, value: Html | string | undefined])[] = [
    ['Last reply of Redis', isCurrent ? undefined : `${formatDuration(ledger.ageMs)} ago; what follows is as of then`],
    ['Sender', describeSender(ledger)],
    ['Last send', sinceSendMs === undefined ? 'none is known' : `${formatDuration(sinceSendMs)} ago`],
    ['Last attempt', describeAttempt(ledger)],
    ['Version', sender?.version],
  ];
  return html`<dl class="vitals">
    ${rows.map(([name, value]) =>
      value === undefined
        ? html``
        : html`<div>
            <dt>${name}</dt>
            <dd><bdi>${value}</bdi></dd>
          </div>`,
    )}
  </dl>`;
}

function describeSender({ life }: LedgerObservation): Html {
  if (life.kind === 'none') return html`no process holds the lease`;
  const heartbeat = {
    checking: 'waiting for a heartbeat',
    alive: 'heartbeat rising',
    silent: `no heartbeat for ${formatDuration(life.kind === 'silent' ? life.silentMs : 0)}`,
  }[life.kind];
  return html`<span class="mono">${life.owner}</span>, ${heartbeat} <span class="quiet">(epoch ${life.epoch})</span>`;
}

function describeAttempt(ledger: LedgerObservation): Html | string {
  const { lastError, nextRetryAt } = findSender(ledger) ?? {};
  if (lastError === undefined) return ledger.sending > 0 ? 'under way' : 'reached the gateway, or there was none';
  const inMs = (nextRetryAt ?? 0) - ledger.wallNow;
  return html`failed: ${lastError}; next try ${inMs < 1_000 ? 'now' : `in ${formatDuration(inMs)}`}`;
}

/** What stops the account until an operator ends it, with the command that does. */
export function adviceCards(stats: AccountStats): Html[] {
  return adviseAccount(stats).map(
    ({ kind, problem, first, command }) =>
      html`<section class="card bad" role="alert">
        <h2>${kind === 'pause' ? 'Paused' : 'Stopped: ledger mismatch'}</h2>
        <p><bdi>${kind === 'pause' ? (stats.pausedReason ?? 'no reason given') : problem}</bdi></p>
        ${kind === 'pause' ? pausedBy(stats) : undefined}
        <p class="quiet">Nothing is sent until an operator resolves this. ${first}</p>
        ${commandLine(command)}
      </section>`,
  );
}

function pausedBy({ pausedBy: by, pausedAt }: AccountStats): Html {
  return html`<p class="quiet">
    by <bdi>${by ?? 'unknown'}</bdi>, since ${pausedAt === null ? 'unknown' : formatTimeUtc(pausedAt)}.
  </p>`;
}
