import { formatAmount, formatDuration, formatState } from '../../base/format.js';
import type { AccountStats } from '../../ledger/reads/account-stats.js';
import type { UnreadablePayout } from '../../ledger/payout-queries.js';
import type { Payout } from '../../ledger/payout.js';
import { URGENT_STATES, type PayoutState, type Tone } from '../../ledger/states.js';
import { html, type Html } from '../layout/html.js';
import type { Site } from '../layout/layout.js';
import { ADDRESS, AGE, AMOUNT, COMMENT, MESSAGE, payoutTable, STATE, unreadableRows } from '../layout/payout-table.js';
import type { Shown } from '../layout/pieces.js';

interface Need {
  readonly tone: Tone;
  readonly count: number;
  readonly what: string;
  readonly age: string | undefined;
  readonly action: string;
  readonly href: string;
}

interface NeedsFacts {
  readonly stats: AccountStats;
  readonly stuck: number;
  /** The first payouts of each urgent state: the oldest, or the newest of a final state. */
  readonly unreadable: readonly UnreadablePayout[];
  readonly listed: ReadonlyMap<PayoutState, readonly Payout[]>;
  readonly wallNow: number;
}

const NEED_OF_STATE: Partial<Record<PayoutState, Pick<Need, 'tone' | 'action'>>> = {
  unknown: { tone: 'bad', action: 'may have been paid: look it up at the gateway, then resolve each' },
  held: { tone: 'warning', action: 'remove the cause, then release or cancel each' },
  rejected: { tone: 'warning', action: 'retry or cancel each' },
  failed: {
    tone: 'bad',
    action: 'final: have the gateway confirm it, then enqueue it under a new payoutId where it is still owed',
  },
};

const LISTED = 5;
const COLUMNS = [STATE, AMOUNT, ADDRESS, MESSAGE, COMMENT, AGE];

export function needsSection(site: Site, facts: NeedsFacts, shown: Shown): Html {
  const needs = [...findNeeds(site, facts)];
  const first = [...facts.listed.values()].flat().slice(0, LISTED);
  if (needs.length === 0) return html`<p class="card quiet">No payout needs an operator.</p>`;
  return html`<section aria-labelledby="needs-title">
    <div class="section-title"><h2 id="needs-title">Need an operator</h2></div>
    <dl class="card data needs">
      ${needs.map(
        ({ tone, count, what, age, action, href }) =>
          html`<div class="tone-${tone}">
            <dt>
              <a class="trouble" href="${href}"><b>${formatAmount(count)} ${what}</b></a>
            </dt>
            <dd>${age} <span class="quiet">${action}</span></dd>
          </div>`,
      )}
    </dl>
    ${unreadableRows(site, facts.unreadable)}
    ${first.length > 0 && payoutTable(site, first, shown, { caption: 'The first payouts that need an operator', columns: COLUMNS })}
    <p class="more">
      ${URGENT_STATES.filter((state) => facts.stats[state] > 0).map(
        (state) =>
          html`<a href="${site.base}/payouts?state=${state}"
            >all ${formatAmount(facts.stats[state])} ${formatState(state)}</a
          > `,
      )}
    </p>
  </section>`;
}

export function countNeeds({ stats, stuck }: Pick<NeedsFacts, 'stats' | 'stuck'>): number {
  return URGENT_STATES.reduce((sum, state) => sum + stats[state], stuck);
}

function* findNeeds({ base }: Site, { stats, stuck, listed, wallNow }: NeedsFacts): Generator<Need> {
  if (stats.latePayments > 0) {
    yield {
      tone: 'bad',
      count: stats.latePayments,
      what: 'possibly paid twice',
      age: undefined,
      action: 'a payment was proved too late: compare with the gateway',
      href: `${base}/payouts?state=unknown`,
    };
  }
  for (const state of URGENT_STATES) {
    const need = NEED_OF_STATE[state];
    const first = listed.get(state)?.[0];
    if (need === undefined || first === undefined) continue;
    const age = formatDuration(Math.max(0, wallNow - Date.parse(first.updatedAt)));
    yield {
      ...need,
      count: stats[state],
      what: state,
      age: state === 'failed' ? `the last ${age} ago` : `the oldest for ${age}`,
      href: `${base}/payouts?state=${state}`,
    };
  }
  if (stuck > 0) {
    yield {
      tone: 'warning',
      count: stuck,
      what: 'in progress for too long',
      age: `the oldest for ${formatDuration(stats.oldestAgeMs.in_progress ?? 0)}`,
      action: 'ask the gateway about the transaction',
      href: `${base}/payouts?state=in_progress`,
    };
  }
  if (stats.unreadable.length > 0) {
    yield {
      tone: 'bad',
      count: stats.unreadable.length,
      what: 'keys in Redis that cannot be read',
      age: undefined,
      action: `someone has altered them: ${stats.unreadable.join(', ')}`,
      href: `${base}/diagnostics`,
    };
  }
  if (stats.outboxUnreadable > 0) {
    yield {
      tone: 'warning',
      count: stats.outboxUnreadable,
      what: 'outbox entries of a newer version',
      age: undefined,
      action: 'a newer version wrote them: see payouts doctor',
      href: `${base}/diagnostics`,
    };
  }
}
