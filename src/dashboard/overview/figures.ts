import { DAY_MS } from '../../base/clock.js';
import { formatAmount, formatCount, formatDuration, formatMoney } from '../../base/format.js';
import type { AccountStats } from '../../ledger/reads/account-stats.js';
import { compareBalance, type BalanceCover } from '../../ledger/reads/balance-cover.js';
import type { GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { COUNTED_TODAY, estimateEnd, type AccountStatistics, type CurrencySum } from '../../ledger/reads/statistics.js';
import { type UnexplainedDrop, listDrops } from '../../ledger/reads/reconciliation.js';
import { formatCommand } from '../../operator/next-steps.js';
import { html, type Html } from '../layout/html.js';
import { runbookLink } from '../runbooks.js';
import type { Site } from '../layout/layout.js';
import { commandLine } from '../layout/pieces.js';

interface FiguresFacts {
  readonly stats: AccountStats;
  readonly statistics: AccountStatistics;
  readonly gateway: GatewayFacts;
  readonly drops: readonly UnexplainedDrop[];
  readonly wallNow: number;
  readonly pace: ShownPace;
}

export function figuresSection(site: Site, facts: FiguresFacts): Html {
  return html`<section class="figures" aria-label="Figures">
    ${backlogCard(facts)} ${balanceCard(site, facts)} ${todayCard(facts)}
  </section>`;
}

function backlogCard(facts: FiguresFacts): Html {
  const { stats, statistics, gateway, pace } = facts;
  return html`<div class="card">
    <h2>Backlog</h2>
    <p class="figure"><b>${formatAmount(stats.queued)}</b> queued</p>
    <p>
      ${stats.queued === 0 ? 'Nothing waits to be sent.' : (pace.end ?? `No end in sight: ${pace.why ?? 'nothing is sent now'}.`)}
    </p>
    ${pace.end !== undefined && html`<p class="quiet">at ${pace.rate}</p>`} ${sumsList(statistics.sums.queued, gateway)}
    ${sumsAge(facts)}
  </div>`;
}

/** The sums follow the ledger by some seconds, and by more if no sender runs. */
function sumsAge({ stats, statistics, wallNow }: FiguresFacts): Html | undefined {
  const counted = statistics.sums.queued.reduce((total, { count }) => total + count, 0);
  if (counted === stats.queued) return undefined;
  const { asOf } = statistics;
  const age = asOf === undefined ? '' : `, as of ${formatDuration(Math.max(0, wallNow - asOf))} ago`;
  return html`<p class="quiet">the sums are of ${formatCount(counted, 'payout')}${age}</p>`;
}

interface ShownPace {
  readonly rate: string;
  readonly end: string | undefined;
  /** Why there is no end, as a clause. */
  readonly why: string | undefined;
}

/** @param stoppedBy - the headline, if nothing is sent */
export function describePace(
  { stats, statistics, wallNow }: Pick<FiguresFacts, 'stats' | 'statistics' | 'wallNow'>,
  stoppedBy: string | undefined,
): ShownPace {
  const { ratePerMinute, endsAt, why } = estimateEnd(statistics, stats, wallNow, stoppedBy);
  const rate = `${ratePerMinute.toFixed(1)} sends a minute`;
  if (endsAt === undefined || stats.queued === 0) return { rate, end: undefined, why };
  return { rate, end: `All sent ${formatEnd(endsAt, wallNow)}`, why };
}

/** `in 21 min, by 01:25 UTC`, with the day if it is another. @param endsAt - wall clock, ms */
export function formatEnd(endsAt: number, wallNow: number): string {
  const leftMs = Math.max(0, endsAt - wallNow);
  const at = new Date(endsAt)
    .toISOString()
    .slice(leftMs < DAY_MS ? 11 : 0, 16)
    .replace('T', ' ');
  return `in ${formatDuration(leftMs)}, by ${at} UTC`;
}

function balanceCard(site: Site, { statistics, gateway, drops, wallNow }: FiguresFacts): Html {
  const { balanceAt, failure } = gateway;
  const covers = compareBalance(gateway, statistics.sums.queued);
  const age = balanceAt === undefined ? undefined : formatDuration(Math.max(0, wallNow - balanceAt));
  return html`<div class="card ${drops.length === 0 && covers.every(({ isEnough }) => isEnough) ? '' : 'bad'}">
    <h2>Balance at the gateway</h2>
    ${covers.length === 0 ? html`<p class="quiet">Not known: no worker has got it from the gateway yet.</p>` : covers.map(balanceLine)}
    ${age !== undefined && html`<p class="quiet">as of ${age} ago</p>`}
    ${failure !== undefined && html`<p class="trouble">The last query failed: <bdi>${failure}</bdi></p>`}
    ${
      drops.length > 0 &&
      html`<p class="trouble">${listDrops(drops)} is missing: the balance fell, and no payout explains it.</p>
        ${runbookLink(site, 'docs/runbooks/balance-fell.md')}
        ${commandLine(formatCommand({ name: 'reconcile', args: [] }, site.platformId))}`
    }
  </div>`;
}

function balanceLine({ currency, balance, queued, isEnough }: BalanceCover): Html {
  const against =
    queued === undefined
      ? undefined
      : html`<p class="${isEnough ? 'quiet' : 'trouble'}">
          ${isEnough ? 'against' : 'too little for'} ${formatAmount(toCents(queued), currency)} queued
        </p>`;
  return html`<p class="figure"><b>${formatAmount(balance)}</b> ${currency}</p>
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
          <dd>
            <b class="${count > 0 && isTrouble ? 'trouble' : ''}">${formatAmount(count)}</b>
            ${sumsList(sums, gateway)}
          </dd>
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
