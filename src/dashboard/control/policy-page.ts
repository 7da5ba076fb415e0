import { formatSpan } from '../../control/policy/values.js';
import { formatAmount, formatCount, formatDuration } from '../../base/format.js';
import {
  type BucketUsage,
  describeRates,
  type PolicyReport,
  type RuleUsage,
  unitOfUsage,
} from '../../ledger/reads/policy-report.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import { heldPath } from '../held/held-query.js';
import { html, type Html } from '../layout/html.js';
import { layout, type Site } from '../layout/layout.js';
import { heading, table, tableCell } from '../layout/pieces.js';

/** The worker publishes every ten seconds. */
const REFRESH_MS = 5_000;

/** An older report is from a worker that stopped. */
const CURRENT_FOR_MS = 60_000;

/** Used and held amounts of each policy window, from the sending worker's report. @param now - wall clock, ms */
export function policyPage(
  site: Site,
  report: PolicyReport | undefined,
  now: number,
  currencies: readonly Currency[],
): string {
  return layout(
    site,
    { title: 'Policy', current: 'policy', refreshMs: REFRESH_MS },
    html`${heading('Policy', 'what may leave, and how much of each window is used')}
    ${
      report === undefined
        ? html`<p class="card quiet">
            No worker with a policy has published anything. <code>PAYOUT_POLICY_FILE</code> names one; until then
            nothing bounds what leaves the account.
          </p>`
        : reportView(site, report, now, currencies)
    }`,
  );
}

function reportView({ base }: Site, report: PolicyReport, now: number, currencies: readonly Currency[]): Html {
  const { hash, at, rules, held, meanings = [] } = report;
  const ageMs = Math.max(0, now - at);
  const rates = describeRates(report, now);
  return html`<p class="${ageMs > CURRENT_FOR_MS ? 'trouble' : 'quiet'}">
      published ${formatDuration(ageMs)} ago${ageMs > CURRENT_FOR_MS ? ': no worker with a policy sends now' : ''}
      ${rates && html`· rates ${rates}`} · hash <span class="mono">${hash}</span>
    </p>
    <section class="list" aria-labelledby="held-title">
      <h2 id="held-title">Held by its rules</h2>
      ${
        held.length === 0
          ? html`<p class="card quiet">Nothing.</p>`
          : html`<ul class="sums">
              ${held.map(
                ({ rule, reason, count }) =>
                  html`<li>
                    <a href="${base}${heldPath({ kind: 'policy', rule, reason })}">${formatCount(count, 'payout')}</a>
                    by ${rule}
                    <span class="quiet">${MEANING[reason] ?? reason}</span>
                  </li>`,
              )}
            </ul>`
      }
    </section>
    ${meanings.length > 0 && rulesSection(meanings)}
    <section class="list" aria-labelledby="windows-title">
      <h2 id="windows-title">Windows</h2>
      ${rules.length === 0 ? html`<p class="card quiet">No rule has a window.</p>` : windowsTable(rules, currencies)}
    </section>`;
}

function rulesSection(meanings: NonNullable<PolicyReport['meanings']>): Html {
  const rows = meanings.map(
    ({ rule, meaning }) =>
      html`<tr data-key="${rule}">
        <th scope="row"><bdi>${rule}</bdi></th>
        ${tableCell('wraps', html`<bdi>${meaning}</bdi>`)}
      </tr>`,
  );
  return html`<section class="list" aria-labelledby="rules-title">
    <h2 id="rules-title">Every rule, in words</h2>
    ${table('What each rule means', ['Rule', 'What it means'], rows)}
    <p class="quiet">All are checked, and the strictest counts. What equals a limit passes.</p>
  </section>`;
}

const MEANING: Readonly<Record<string, string>> = {
  wait: 'until there is room, or its time comes',
  approve: 'until people have approved it',
  refuse: 'until the policy changes, or it is cancelled',
};

function windowsTable(rules: readonly RuleUsage[], currencies: readonly Currency[]): Html {
  return table(
    'How much of each window is used',
    ['Rule', 'Counted for', 'Used', '#Spent', '#Wanted by what waits'],
    rules.flatMap((rule) => rule.buckets.map((bucket) => windowRow(rule, bucket, currencies))),
  );
}

function windowRow(rule: RuleUsage, usage: BucketUsage, currencies: readonly Currency[]): Html {
  const { rule: name, limit, withinMs, unknown } = rule;
  const unit = unitOfUsage(rule, currencies);
  const { bucket, spent, wanted, ratio } = usage;
  const percent = `${Math.round(ratio * 100)} %`;
  const label = `${name}${bucket === '' ? '' : ` for ${bucket}`}: ${percent} used`;
  return html`<tr data-key="${name} ${bucket}">
    <th scope="row">${name}</th>
    ${tableCell('mono', bucket === '' ? 'everything' : bucket)}
    ${tableCell('', html`<meter min="0" max="1" high="0.8" optimum="0" value="${ratio}" aria-label="${label}"></meter> ${percent}`)}
    ${tableCell('number', unknown ?? `${formatAmount(spent)} of ${formatAmount(limit, unit)} in ${formatSpan(withinMs)}`)}
    ${tableCell('number', Number(wanted) === 0 ? undefined : formatAmount(wanted, unit))}
  </tr>`;
}
