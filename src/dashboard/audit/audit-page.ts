import { formatMoney } from '../../format.js';
import type { PolicyReport } from '../../ledger/policy-report.js';
import type { SignerView } from '../control/judge-signer.js';
import { html, type Html } from '../html.js';
import { layout, type Site } from '../layout.js';
import { payoutPath } from '../payout-path.js';
import { stateBadge } from '../payout-table.js';
import type { Shown } from '../shown.js';
import { tableCell } from '../table-cell.js';
import { utcTime } from '../time.js';
import { txhashView } from '../txhash.js';
import type { AuditRow, SentPayout } from './audit-row.js';

export interface AuditList {
  readonly rows: readonly AuditRow[];
  readonly next: string | undefined;
  readonly isFirst: boolean;
  readonly hasKeyring: boolean;
  /** Undefined where no worker with a policy has told. */
  readonly report: PolicyReport | undefined;
}

/** What was sent, who signed and approved it, and what came of it; newest first. */
export function auditPage(site: Site, list: AuditList, shown: Shown): string {
  const { rows, next, isFirst, hasKeyring, report } = list;
  const path = `${site.base}/audit`;
  return layout(
    site,
    { title: 'Audit', current: 'audit' },
    html`<div class="heading">
        <h1>Audit</h1>
        <p class="quiet">what was sent, who said so, what came of it · newest first</p>
      </div>
      <section class="card" aria-label="What this page is worth">
        <p>
          All of this is what Redis says, and who can write to Redis can alter it. The proof is the send journal:
          <code>payouts audit verify</code> on the worker’s host checks every line,
          <code>payouts audit export</code> prints each send with its policy’s hash.
          ${hasKeyring ? 'Signatures and approvals were verified with the keyring of this dashboard, as of the begin of each send.' : 'This dashboard has no keyring (PAYOUT_KEYS_FILE): nothing is verified.'}
        </p>
        ${report === undefined ? undefined : html`<p>The policy that counts now, says the worker: <span class="mono">${report.hash.slice(0, 12)}</span></p>`}
      </section>
      ${
        rows.length > 0
          ? sendsTable(site, rows, shown)
          : html`<p class="card calm">
              ${next !== undefined ? 'Nothing among the events searched so far.' : isFirst ? 'Nothing was sent so far.' : 'Nothing more, as far as events are kept.'}
            </p>`
      }
      <nav class="more" aria-label="Pages">
        ${isFirst ? undefined : html`<a href="${path}">First page</a>`}
        ${next === undefined ? undefined : html`<a href="${path}?before=${next}" rel="next">Older</a>`}
      </nav>`,
  );
}

const COLUMNS = ['Sent', 'Payout', 'Amount', 'Signed by', 'Approved by', 'Outcome', 'txhash'];

function sendsTable(site: Site, rows: readonly AuditRow[], shown: Shown): Html {
  return html`<table class="payouts sends">
    <caption class="unseen">
      What was sent, newest first
    </caption>
    <thead>
      <tr>
        ${COLUMNS.map((title) => html`<th scope="col">${title}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map((row) => sendRow(site, row, shown))}
    </tbody>
  </table>`;
}

function sendRow({ base }: Site, { payoutId, at, sent }: AuditRow, shown: Shown): Html {
  const link = html`<a href="${base}${payoutPath(payoutId)}">${payoutId}</a>`;
  return html`<tr>
    ${tableCell('Sent', 'time', utcTime(at))} ${tableCell('Payout', 'id', link)}
    ${sent === undefined ? tableCell('Outcome', '', 'no longer in the ledger') : sentCells(sent, shown)}
  </tr>`;
}

function sentCells({ payout, signer, said, usd, outcome, txhash }: SentPayout, { currencies, explorers }: Shown): Html {
  const { payoutId, amount, paymentId } = payout;
  const money = html`<strong>${formatMoney(amount, paymentId, currencies)}</strong>
    ${usd === undefined ? undefined : html`<span class="quiet line">${usd} USD at its begin</span>`}`;
  const approvers = [...said.approvedBy, ...said.unverified.map((key) => `key ${key}, not verified`)];
  return html`${tableCell('Amount', 'money', money)} ${tableCell('Signed by', 'who', signerView(signer))}
  ${tableCell('Approved by', 'who', approvers.length === 0 ? undefined : html`<bdi>${approvers.join(', ')}</bdi>`)}
  ${tableCell('Outcome', '', outcome === undefined ? 'taken back, not sent' : stateBadge(outcome))}
  ${tableCell('txhash', 'code', txhash === undefined ? undefined : txhashView(txhash, { payoutId, paymentId, explorers, short: true }))}`;
}

function signerView(signer: SignerView): Html | undefined {
  switch (signer.kind) {
    case 'unsigned':
      return undefined;
    case 'unjudged':
      return html`<bdi>key ${signer.key}, not verified</bdi>`;
    case 'verified':
      return html`<bdi>${signer.person} (${signer.key})</bdi>`;
    case 'refused':
      return html`<bdi>key ${signer.key} does not count: ${signer.message}</bdi>`;
  }
}
