import type { AccountStats } from '../ledger/account-stats.js';
import type { SenderLife } from '../ledger/watch-heartbeat.js';
import { OPERATOR_STATES, PAYOUT_STATES, STATE_MEANING, STATE_TONE, type PayoutState } from '../ledger/states.js';
import { formatDuration, formatSeconds, formatState, formatTimeUtc } from '../format.js';
import { html, type Html } from './html.js';
import type { Site } from './layout.js';
import { commandLine } from './command-line.js';
import { adviseAccount } from '../operator/account-advice.js';

/** Whether the account sends, and which process does. */
export function accountStatus(stats: AccountStats, life: SenderLife): Html {
  return html`<div class="status">${pauseCard(stats)}${senderCard(stats, life)}</div>`;
}

function pauseCard(stats: AccountStats): Html {
  const [advice] = adviseAccount(stats);
  if (advice === undefined) {
    return html`<section class="card good">
      <h2>Not paused</h2>
      <p class="quiet">Consecutive: ${stats.rejectionsInARow} rejected, ${stats.unknownsInARow} unknown.</p>
    </section>`;
  }
  return html`<section class="card bad" role="alert">
    <h2>${advice.kind === 'pause' ? 'Paused' : 'Stopped: ledger mismatch'}</h2>
    <p><bdi>${advice.kind === 'pause' ? (stats.pausedReason ?? 'no reason given') : advice.problem}</bdi></p>
    ${advice.kind === 'pause' ? pausedBy(stats) : undefined}
    <p class="quiet">Nothing is sent until an operator resolves this. ${advice.first}</p>
    ${commandLine(advice.command)}
  </section>`;
}

function pausedBy({ pausedBy: by, pausedAt }: AccountStats): Html {
  return html`<p class="quiet">
    by <bdi>${by ?? 'unknown'}</bdi>, since ${pausedAt === null ? 'unknown' : formatTimeUtc(pausedAt)}.
  </p>`;
}

function senderCard({ sends, withoutJob }: AccountStats, life: SenderLife): Html {
  const counts = `Sends: ${sends}. Payouts waiting for their job: ${withoutJob}.`;
  if (life.kind === 'none' || life.kind === 'changing') {
    return html`<section class="card warn">
      <h2>${life.kind === 'none' ? 'No sender' : 'The sender is changing'}</h2>
      <p>
        ${life.kind === 'none' ? html`No worker holds the sender lease. Start one: <code>payouts worker</code>` : 'Refresh to see the new one.'}
      </p>
      <p class="quiet">${counts}</p>
    </section>`;
  }
  const isAlive = life.kind === 'alive';
  return html`<section class="card ${isAlive ? 'good' : 'bad'}">
    <h2>${isAlive ? 'Sender' : 'Sender without heartbeat'}</h2>
    <p><bdi class="mono">${life.owner}</bdi></p>
    ${
      isAlive
        ? undefined
        : html`<p>
            No heartbeat for ${formatSeconds(life.waitedMs)}: it has ended or hangs. Start a worker, or wait until a
            standby takes over: <code>payouts worker</code>
          </p>`
    }
    <p class="quiet">epoch ${life.epoch}, heartbeat ${life.heartbeat}${isAlive ? ' and rising' : ''}</p>
    <p class="quiet">${counts}</p>
  </section>`;
}

/** The number of payouts in each state, as links to them. */
export function stateTiles({ base }: Site, stats: AccountStats, shown?: PayoutState): Html {
  return html`<nav class="tiles" aria-label="States">
    ${PAYOUT_STATES.map((state) => tile(base, stats, state, shown))}
  </nav>`;
}

function tile(base: string, stats: AccountStats, state: PayoutState, shown: PayoutState | undefined): Html {
  const count = stats[state];
  const ages: Partial<Record<PayoutState, number | null>> = stats.oldestAgeMs;
  const oldest = ages[state] ?? null;
  const urgent = OPERATOR_STATES.includes(state) && count > 0 ? 'urgent' : '';
  return html`<a
    class="tile tone-${STATE_TONE[state]} ${urgent}"
    href="${base}/payouts?state=${state}"
    title="${STATE_MEANING[state]}"
    aria-current="${state === shown ? 'true' : 'false'}"
  >
    <b>${count}</b> <span>${formatState(state)}</span>
    ${oldest === null ? undefined : html`<small>oldest ${formatDuration(oldest)}</small>`}
  </a>`;
}
