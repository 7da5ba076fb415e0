import { formatMicros } from '../../control/policy/values.js';
import { formatAmount, formatMoney } from '../../base/format.js';
import type { Payout } from '../../ledger/payout.js';
import type { PolicyReport } from '../../ledger/reads/policy-report.js';
import type { PayoutState } from '../../ledger/states.js';
import type { ApprovalView } from '../../control/approvals/approvable-payout.js';
import { html, type Html } from '../layout/html.js';
import { layout, LIST_REFRESH_MS, type Site } from '../layout/layout.js';
import { payoutPath, stateBadge } from '../layout/payout-table.js';
import { heading, pager, type Shown, table, tableCell, textCell, txhashView, utcTime } from '../layout/pieces.js';
import { checkSigner, type SignerView, whoSaid, type WhoSaid } from './payout-control.js';

interface AuditList {
  readonly rows: readonly AuditRow[];
  readonly next: string | undefined;
  readonly isFirst: boolean;
  readonly hasKeyring: boolean;
  /** Undefined if no worker with a policy has published one. */
  readonly report: PolicyReport | undefined;
}

export function auditPage(site: Site, list: AuditList, shown: Shown): string {
  const { rows, next, isFirst, hasKeyring, report } = list;
  const path = `${site.base}/audit`;
  return layout(
    site,
    { title: 'Audit', current: 'audit', refreshMs: LIST_REFRESH_MS },
    html`${heading('Audit', 'sends, who signed and approved them, their outcomes · newest first')}
      <section class="card" aria-label="What this page is worth">
        <p>
          This is what Redis says, and someone who can write to Redis can alter it. The proof is the send journal:
          <code>payouts audit verify</code> on the worker’s host checks every line,
          <code>payouts audit export</code> prints each send with its policy’s hash.
          ${hasKeyring ? 'Signatures and approvals were verified with the keyring of this dashboard, as of the begin of each send.' : 'This dashboard has no keyring (PAYOUT_KEYS_FILE): nothing is verified.'}
        </p>
        ${report !== undefined && html`<p>The policy in use, as the worker reports it: <span class="mono">${report.hash.slice(0, 12)}</span></p>`}
      </section>
      ${
        rows.length > 0
          ? sendsTable(site, rows, shown)
          : html`<p class="card quiet">
              ${next !== undefined ? 'Nothing among the events searched so far.' : isFirst ? 'Nothing was sent so far.' : 'Nothing more, as far as events are kept.'}
            </p>`
      }
      ${pager(isFirst ? undefined : path, next && `${path}?before=${next}`, 'Older')}`,
  );
}

const COLUMNS = ['Sent', 'Payout', '#Amount', 'Signed by', 'Approved by', 'Outcome', 'txhash'];

function sendsTable(site: Site, rows: readonly AuditRow[], shown: Shown): Html {
  return table(
    'What was sent, newest first',
    COLUMNS,
    rows.map((row) => sendRow(site, row, shown)),
  );
}

function sendRow({ base }: Site, { payoutId, at, sent }: AuditRow, shown: Shown): Html {
  const link = html`<a href="${base}${payoutPath(payoutId)}">${payoutId}</a>`;
  return html`<tr data-key="${payoutId} ${at}">
    ${tableCell('', utcTime(at))} ${tableCell('id', link)}
    ${sent === undefined ? tableCell('', 'no longer in the ledger') : sentCells(sent, shown)}
  </tr>`;
}

function sentCells({ payout, signer, said, usd, outcome, txhash }: SentPayout, { currencies, explorers }: Shown): Html {
  const { amount, paymentId } = payout;
  const money = html`<strong>${formatMoney(amount, paymentId, currencies)}</strong>
    ${usd !== undefined && html`<span class="quiet" title="when its send began">${formatAmount(usd, 'USD')}</span>`}`;
  const approvers = [...said.approvedBy, ...said.unverified.map((key) => `key ${key}, not verified`)];
  return html`${tableCell('number', money)} ${textCell(signerText(signer))}
  ${textCell(approvers.length === 0 ? undefined : approvers.join(', '))}
  ${tableCell('', outcome === undefined ? 'taken back, not sent' : stateBadge(outcome))}
  ${tableCell('', txhash && txhashView(txhash, payout, explorers, true))}`;
}

function signerText(signer: SignerView): string | undefined {
  switch (signer.kind) {
    case 'unsigned':
      return undefined;
    case 'unjudged':
      return `key ${signer.key}, not verified`;
    case 'verified':
      return `${signer.person} (${signer.key})`;
    case 'refused':
      return `key ${signer.key} does not count: ${signer.message}`;
  }
}

export interface AuditRow {
  readonly payoutId: string;
  readonly at: string;
  /** Undefined if retention removed the payout or its record is unreadable. */
  readonly sent: SentPayout | undefined;
}

interface SentPayout {
  readonly payout: Payout;
  readonly signer: SignerView;
  readonly said: WhoSaid;
  readonly usd: string | undefined;
  /** Undefined if the attempt was taken back, so nothing was sent. */
  readonly outcome: PayoutState | undefined;
  /** Only of the last attempt: the record has no place for others. */
  readonly txhash: string | undefined;
}

/**
 * @param at - of the begin, wall clock, ms
 * @param micros - millionths of a dollar that a policy counted
 * @param view - as of the begin
 */
export function toAuditRow(
  payoutId: string,
  at: number,
  payout: Payout | undefined,
  micros: bigint | undefined,
  view: ApprovalView | undefined,
): AuditRow {
  const iso = new Date(at).toISOString();
  const index = payout?.history.findIndex((entry) => entry.to === 'sending' && entry.at === iso) ?? -1;
  if (payout === undefined || index === -1) return { payoutId, at: iso, sent: undefined };
  const { outcome, isLast } = findOutcome(payout, index);
  const sent = {
    ...{ payout, outcome, signer: checkSigner(payout, view), said: whoSaid(payout, view) },
    usd: micros === undefined ? undefined : formatMicros(micros),
    txhash: isLast ? payout.txhash : undefined,
  };
  return { payoutId, at: iso, sent };
}

/** @param index - of the begin in the history */
function findOutcome(
  { history }: Payout,
  index: number,
): { readonly outcome: PayoutState | undefined; readonly isLast: boolean } {
  const later = history.slice(index + 1).map(({ to }) => to);
  const end = later.findIndex((to) => to === 'queued' || to === 'sending');
  const own = end === -1 ? later : later.slice(0, end);
  const isLast = !later.includes('sending');
  return { outcome: later[0] === 'queued' ? undefined : (own.at(-1) ?? 'sending'), isLast };
}
