import { formatCount, formatDuration, formatMoney } from '../../base/format.js';
import type { AccountStats } from '../../ledger/reads/account-stats.js';
import { compareBalance, type BalanceCover } from '../../ledger/reads/balance-cover.js';
import type { GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { COUNTED_TODAY, estimateEnd, type AccountStatistics, type CurrencySum } from '../../ledger/reads/statistics.js';
import { html, type Html } from '../layout/html.js';

interface FiguresFacts {
  readonly stats: AccountStats;
  readonly statistics: AccountStatistics;
  readonly gateway: GatewayFacts;
  readonly wallNow: number;
  readonly isMoving: boolean;
}

export function figuresSection(facts: FiguresFacts): Html {
  return html`<section class="figures" aria-label="Figures">
    ${backlogCard(facts)} ${balanceCard(facts)} ${todayCard(facts)}
  </section>`;
}

function backlogCard(facts: FiguresFacts): Html {
  const { stats, statistics, gateway } = facts;
  const pace = describePace(facts);
  return html`<div class="card">
    <h2>Backlog</h2>
    <p class="figure"><b>${stats.queued}</b> queued</p>
    <p>
      ${stats.queued === 0 ? 'Nothing waits to be sent.' : (pace.end ?? 'Its end is unknown: nothing is sent now.')}
    </p>
    <p class="quiet">${pace.rate} over the last 10 minutes</p>
    ${sumsList(statistics.sums.queued, gateway)}
  </div>`;
}

export function describePace({ stats, statistics, wallNow, isMoving }: Omit<FiguresFacts, 'gateway'>): {
  readonly rate: string;
  readonly end: string | undefined;
} {
  const { ratePerMinute, endsAt } = estimateEnd(statistics, stats, wallNow);
  const rate = `${ratePerMinute.toFixed(1)} sends a minute`;
  if (!isMoving || endsAt === undefined || stats.queued === 0) return { rate, end: undefined };
  const at = new Date(endsAt).toISOString().slice(11, 16);
  return { rate, end: `All sent by ${at} UTC, in ${formatDuration(Math.max(0, endsAt - wallNow))}` };
}

function balanceCard({ statistics, gateway, wallNow }: FiguresFacts): Html {
  const { balanceAt, failure } = gateway;
  const covers = compareBalance(gateway, statistics.sums.queued);
  const age = balanceAt === undefined ? undefined : formatDuration(Math.max(0, wallNow - balanceAt));
  return html`<div class="card ${covers.every(({ isEnough }) => isEnough) ? '' : 'bad'}">
    <h2>Balance at the gateway</h2>
    ${covers.length === 0 ? html`<p class="quiet">Not known: no worker has got it from the gateway yet.</p>` : covers.map(balanceLine)}
    ${age !== undefined && html`<p class="quiet">as of ${age} ago</p>`}
    ${failure !== undefined && html`<p class="trouble">The last query failed: <bdi>${failure}</bdi></p>`}
  </div>`;
}

function balanceLine({ currency, balance, queued, isEnough }: BalanceCover): Html {
  const against =
    queued === undefined
      ? undefined
      : html`<p class="${isEnough ? 'quiet' : 'trouble'}">
          ${isEnough ? 'against' : 'too little for'} ${toCents(queued)} ${currency} queued
        </p>`;
  return html`<p class="figure"><b>${balance}</b> ${currency}</p>
    ${against}`;
}

/** A sum at rates has more decimals than it is exact. */
function toCents(amount: string): string {
  return amount.replace(/(\.\d\d)\d+$/, '$1');
}

const TODAY_NAMES = { sent: 'Sent', completed: 'Completed', rejected: 'Rejected', failed: 'Failed' } as const;

function todayCard({ statistics, gateway }: FiguresFacts): Html {
  return html`<div class="card">
    <h2>Today (UTC)</h2>
    <dl class="data today">
      ${COUNTED_TODAY.map((kind) => {
        const sums = statistics.today[kind];
        const count = sums.reduce((total, each) => total + each.count, 0);
        const isTrouble = kind === 'rejected' || kind === 'failed';
        return html`<div>
          <dt>${TODAY_NAMES[kind]}</dt>
          <dd><b class="${count > 0 && isTrouble ? 'trouble' : ''}">${count}</b> ${sumsList(sums, gateway)}</dd>
        </div>`;
      })}
    </dl>
  </div>`;
}

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
