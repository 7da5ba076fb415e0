import { formatMoney } from '../../format.js';
import type { Payout } from '../../ledger/payout.js';
import { whatFrees } from '../../operator/what-frees.js';
import { commandLine } from '../command-line.js';
import type { WhoSaid } from '../control/who-said.js';
import { copyButton } from '../copy-button.js';
import { html, type Html } from '../html.js';
import { payoutPath } from '../payout-path.js';
import type { Shown } from '../shown.js';
import type { Site } from '../site.js';
import { relativeTime, utcTime } from '../time.js';
import { usdWorth } from '../usd-worth.js';
import { holdName } from './hold-names.js';

/** One held payout: what it is, why it is held, who has said what, and what frees it. */
export function heldItem(site: Site, payout: Payout, said: WhoSaid, { currencies, wallNow }: Shown): Html {
  const { payoutId, amount, paymentId, addressTo, reference, held, updatedAt } = payout;
  const { when, command } = whatFrees(payout, site.platformId, site);
  const worth = usdWorth(amount, paymentId, currencies);
  const until = held?.until;
  const rows: readonly (readonly [name: string, value: Html | undefined])[] = [
    [
      'Amount',
      html`<strong>${formatMoney(amount, paymentId, currencies)}</strong> <span class="quiet">${worth}</span>`,
    ],
    ['To', html`<bdi class="mono">${addressTo}</bdi>${copyButton(addressTo, `address of ${payoutId}`)}`],
    ['Reference', reference === undefined ? undefined : html`<bdi>${reference}</bdi>`],
    ['Why', html`<bdi>${held?.message ?? 'not known'}</bdi>`],
    [
      'Until',
      isTime(until) ? html`${utcTime(until)} <span class="quiet">(${relativeTime(until, wallNow)})</span>` : undefined,
    ],
    ['Held for', relativeTime(updatedAt, wallNow)],
    ['Approved by', approvedBy(payout, said)],
    ['Rejected by', said.rejectedBy.length === 0 ? undefined : html`<bdi>${said.rejectedBy.join(', ')}</bdi>`],
    ['Does not count', doesNotCount(said)],
    ['What frees it', html`${when}${command === undefined ? undefined : commandLine(command)}`],
  ];
  return html`<li class="card" data-key="${payoutId}">
    <h2><a class="mono" href="${site.base}${payoutPath(payoutId)}">${payoutId}</a></h2>
    <p class="quiet"><bdi>${holdName(held)}</bdi></p>
    <dl class="data">
      ${rows.flatMap(([name, value]) =>
        value === undefined
          ? []
          : [
              html`<div>
                <dt>${name}</dt>
                <dd>${value}</dd>
              </div>`,
            ],
      )}
    </dl>
  </li>`;
}

/** Redis may say anything in place of a time. */
function isTime(text: string | undefined): text is string {
  return text !== undefined && !Number.isNaN(Date.parse(text));
}

function approvedBy({ held }: Payout, { approvedBy: persons, unverified }: WhoSaid): Html | undefined {
  const needs = held?.needs;
  if (needs === undefined && persons.length === 0 && unverified.length === 0) return undefined;
  const missing = needs && `${needs.persons} more ${needs.persons === 1 ? 'person' : 'persons'} of ${needs.by} needed`;
  const keys = unverified.length === 0 ? undefined : `said by ${unverified.join(', ')}, not verified: no keyring here`;
  return html`<bdi>${persons.length === 0 ? 'nobody so far' : persons.join(', ')}</bdi>
    <span class="quiet"><bdi>${[missing, keys].filter((part) => part !== undefined).join(' · ')}</bdi></span>`;
}

function doesNotCount({ refused }: WhoSaid): Html | undefined {
  if (refused.length === 0) return undefined;
  return html`${refused.map(({ by, message }) => html`<span class="line"><bdi>key ${by}: ${message}</bdi></span>`)}`;
}
