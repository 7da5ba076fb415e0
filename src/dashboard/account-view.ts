import type { AccountStats } from '../ledger/account-stats.js';
import { OPERATOR_STATES, PAYOUT_STATES, STATE_MEANING, STATE_TONE, type PayoutState } from '../ledger/states.js';
import { formatDuration, formatState, formatTimeUtc } from '../format.js';
import { html, type Html } from './html.js';
import type { Site } from './layout.js';
import { commandLine } from './command-line.js';
import { adviseAccount } from '../operator/account-advice.js';

/** Whether the account sends, and which process does. */
export function accountStatus(stats: AccountStats): Html {
  return html`<div class="status">${pauseCard(stats)}${senderCard(stats)}</div>`;
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

function senderCard({ sender, sends, withoutJob }: AccountStats): Html {
  const counts = `Sends: ${sends}. Payouts waiting for their job: ${withoutJob}.`;
  if (sender === null) {
    return html`<section class="card warn">
      <h2>No sender</h2>
      <p>No worker holds the sender lease. Start one: <code>payouts worker</code></p>
      <p class="quiet">${counts}</p>
    </section>`;
  }
  return html`<section class="card good">
    <h2>Sender</h2>
    <p><bdi class="mono">${sender.owner}</bdi></p>
    <p class="quiet">
      epoch ${sender.epoch}, heartbeat ${sender.heartbeat} (rises every second while the sender is alive)
    </p>
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
