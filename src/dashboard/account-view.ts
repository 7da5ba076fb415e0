import type { AccountStats } from '../ledger/account-stats.js';
import { OPERATOR_STATES, PAYOUT_STATES, STATE_MEANING, STATE_TONE, type PayoutState } from '../ledger/states.js';
import { formatDuration, formatState } from '../format.js';
import { html, type Html } from './html.js';
import type { Site } from './layout.js';

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
