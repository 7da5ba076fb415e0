import { formatAmount } from '../../base/format.js';
import type { CameBack } from '../../operator/came-back.js';
import { html, type Html } from '../layout/html.js';
import type { Site } from '../layout/layout.js';
import { payoutPath } from '../layout/payout-table.js';
import { storedTime, table, tableCell, textCell } from '../layout/pieces.js';

/** After an adoption: of which payouts an older Redis decides when, or whether, they are sent. */
export function cameBackSection({ base, now }: Site, { held, notBefore }: CameBack): Html {
  const link = (payoutId: string): Html =>
    html`<th scope="row" class="id"><a href="${base}${payoutPath(payoutId)}">${payoutId}</a></th>`;
  const heldRows = held.payouts.map(
    (payout) =>
      html`<tr data-key="${payout.payoutId}">
        ${link(payout.payoutId)}${textCell(payout.held.message)}${tableCell('', storedTime(payout.updatedAt))}
      </tr>`,
  );
  const dateRows = notBefore.payouts.map(
    (payout) =>
      html`<tr data-key="${payout.payoutId}">
        ${link(payout.payoutId)}${tableCell('', storedTime(payout.notBefore))}${textCell(Date.parse(payout.notBefore) > now ? undefined : 'its date has passed: it is sent once the account is resumed')}
      </tr>`,
  );
  return html`<section aria-labelledby="came-back-title">
    <div class="section-title"><h2 id="came-back-title">What came back</h2></div>
    <p class="card quiet">
      The ledger was adopted. No journal knows of holds and dates: these are as an older Redis had them, and what was
      decided about them since then is lost. So are comments, releases, retries, approvals, and cancellations that no
      worker had seen: look also through the <a href="${base}/payouts?state=queued">queued</a> and
      <a href="${base}/payouts?state=rejected">rejected</a> payouts, and cancel what must not be paid.
    </p>
    ${heldRows.length > 0 ? table('Held payouts that came back', ['Payout', 'Held because', 'Since (UTC)'], heldRows) : html`<p class="quiet">No payout is held.</p>`}
    ${more(held.more, `${base}/held`)}
    ${dateRows.length > 0 ? table('Queued payouts with a date that came back', ['Payout', 'Not before (UTC)', 'Then'], dateRows) : html`<p class="quiet">No queued payout has a date.</p>`}
    ${more(notBefore.more, `${base}/payouts?state=queued`)}
  </section>`;
}

function more(count: number, href: string): Html | undefined {
  return count === 0 ? undefined : html`<p><a href="${href}">and ${formatAmount(count)} more</a></p>`;
}
