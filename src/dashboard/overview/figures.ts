import { formatCount, formatDuration, formatMoney } from '../../format.js';
import type { AccountStats } from '../../ledger/account-stats.js';
import type { GatewayFacts } from '../../ledger/gateway-facts.js';
import { COUNTED_TODAY, estimateEnd, type AccountStatistics, type CurrencySum } from '../../ledger/statistics.js';
import { html, type Html } from '../html.js';
import { compareBalances, type ComparedBalance } from './compare-balance.js';

interface FiguresFacts {
  readonly stats: AccountStats;
  readonly statistics: AccountStatistics;
  readonly gateway: GatewayFacts;
  /** Wall clock, ms. */
  readonly wallNow: number;
}

/** How fast it goes and how long it takes, what there is to pay with, and what was paid today. */
export function figuresSection(facts: FiguresFacts): Html {
  return html`<section class="figures" aria-label="Figures">
    ${backlogCard(facts)} ${balanceCard(facts)} ${todayCard(facts)}
  </section>`;
}

function backlogCard({ stats, statistics, gateway, wallNow }: FiguresFacts): Html {
  const { ratePerMinute, endsAt } = estimateEnd(statistics, stats, wallNow);
  const end =
    endsAt === undefined
      ? 'The end cannot be told: nothing is sent now.'
      : `Sent by ${new Date(endsAt).toISOString().slice(11, 16)} UTC, in ${formatDuration(Math.max(0, endsAt - wallNow))}.`;
  return html`<div class="card">
    <h2>Backlog</h2>
    <p class="figure"><b>${stats.queued}</b> queued</p>
    <p>${stats.queued === 0 ? 'Nothing waits to be sent.' : end}</p>
    <p class="quiet">${ratePerMinute.toFixed(1)} sends a minute over the last 10 minutes</p>
    ${sumsList(statistics.sums.queued, gateway)}
  </div>`;
}

function balanceCard({ statistics, gateway, wallNow }: FiguresFacts): Html {
  const { balance, balanceAt, failure, currencies } = gateway;
  const compared = compareBalances(balance, statistics.sums.queued, currencies);
  const isShort = compared.some(({ missing }) => missing !== undefined);
  const age = balanceAt === undefined ? undefined : formatDuration(Math.max(0, wallNow - balanceAt));
  return html`<div class="card ${isShort ? 'short' : ''}">
    <h2>Balance at the gateway</h2>
    ${
      balance.length === 0
        ? html`<p class="quiet">Not known yet: a worker asks the gateway for it.</p>`
        : compared.map((each) => balanceLine(each, gateway))
    }
    ${age === undefined ? undefined : html`<p class="quiet">as of ${age} ago</p>`}
    ${failure === undefined ? undefined : html`<p class="trouble">The last query failed: <bdi>${failure}</bdi></p>`}
  </div>`;
}

function balanceLine(
  { amount, paymentId, symbol = '', queued, missing }: ComparedBalance,
  { currencies }: GatewayFacts,
): Html {
  const format = (sum: string): string =>
    paymentId === undefined ? `${toCents(sum)} ${symbol}` : formatMoney(sum, paymentId, currencies);
  return html`<p class="figure"><b>${format(amount)}</b></p>
    ${
      queued === undefined
        ? undefined
        : html`<p class="${missing === undefined ? 'quiet' : 'trouble'}">
            against ${format(queued)} queued${missing === undefined ? '' : `: ${format(missing)} are missing`}
          </p>`
    }`;
}

/** A sum at rates has more places than it is exact. */
function toCents(amount: string): string {
  return amount.replace(/(\.\d\d)\d+$/, '$1');
}

const TODAY_NAMES = { sent: 'Sent', completed: 'Completed', rejected: 'Rejected', failed: 'Failed' } as const;

function todayCard({ statistics, gateway }: FiguresFacts): Html {
  return html`<div class="card">
    <h2>Today (UTC)</h2>
    <dl class="today">
      ${COUNTED_TODAY.map((kind) => {
        const sums = statistics.today[kind];
        const count = sums.reduce((total, each) => total + each.count, 0);
        return html`<div class="${count > 0 ? kind : 'none'}">
          <dt>${TODAY_NAMES[kind]}</dt>
          <dd><b>${count}</b> ${sumsList(sums, gateway)}</dd>
        </div>`;
      })}
    </dl>
  </div>`;
}

/** Sums of each currency; the largest numbers of payouts first. */
function sumsList(sums: readonly CurrencySum[], { currencies }: GatewayFacts): Html | undefined {
  if (sums.length === 0) return undefined;
  const sorted = sums.toSorted((one, other) => other.count - one.count);
  return html`<ul class="sums">
    ${sorted.map(
      ({ amount, paymentId, count }) =>
        html`<li title="${formatCount(count, 'payout')}">${formatMoney(amount, paymentId, currencies)}</li>`,
    )}
  </ul>`;
}
