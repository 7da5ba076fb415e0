import { describeVerdict } from '../../control/policy/decide.js';
import type { Payout } from '../../ledger/payout.js';
import { html, type Html } from '../layout/html.js';
import { storedTime, tableCell, utcTime, table } from '../layout/pieces.js';
import type { PayoutControl, RulesView, ShownApproval, SignerView } from './payout-control.js';

export function controlSection(payout: Payout, { signer, asOf, approvals, rules }: PayoutControl): Html | undefined {
  if (signer.kind === 'unsigned' && approvals.length === 0 && rules === undefined) return undefined;
  return html`<section class="card control">
    <h2>Signed and approved</h2>
    <p>${signerText(payout, signer)}</p>
    ${asOf !== undefined && html`<p class="quiet">Checked as of the begin of its last send, ${utcTime(asOf)}.</p>`}
    ${
      approvals.length > 0 &&
      html`<ul class="approvals">
        ${approvals.map(approvalItem)}
      </ul>`
    }
    ${rules === undefined ? undefined : rulesView(rules)}
  </section>`;
}

function signerText({ signed }: Payout, signer: SignerView): Html {
  const times =
    signed && html` <span class="quiet">${storedTime(signed.issuedAt)} until ${storedTime(signed.expiresAt)}</span>`;
  switch (signer.kind) {
    case 'unsigned':
      return html`No producer signed it: a worker with a keyring does not send it.`;
    case 'unjudged':
      return html`Signed with key <bdi>${signer.key}</bdi>: <strong>not verified</strong>, this dashboard has no keyring
        (<code>PAYOUT_KEYS_FILE</code>).${times}`;
    case 'verified':
      return html`Signed by <bdi>${signer.person}</bdi> with key <bdi>${signer.key}</bdi>:
        <strong>verified</strong>.${times}`;
    case 'refused':
      return html`Signed with key <bdi>${signer.key}</bdi>: <strong>not verified</strong>.
        <bdi>${signer.message}</bdi>${times}`;
  }
}

function approvalItem({ approval, person, message }: ShownApproval): Html {
  const { decision, reason, by, at, expiresAt } = approval;
  const who = person === undefined ? html`key <bdi>${by}</bdi>` : html`<bdi>${person}</bdi> (key <bdi>${by}</bdi>)`;
  return html`<li>
    <p>${SAID[decision]} by ${who}, ${utcTime(at)}${expiresAt !== undefined && html` until ${utcTime(expiresAt)}`}</p>
    ${message !== undefined && html`<p><strong>Does not count</strong>: <bdi>${message}</bdi></p>`}
    ${reason !== '' && html`<p class="quiet">Reason: <bdi>${reason}</bdi></p>`}
  </li>`;
}

const SAID = { approve: 'Approved', reject: 'Rejected', unreject: 'Rejection taken back' } as const;

function rulesView(rules: RulesView): Html {
  if (rules.kind === 'no_file') {
    return html`<p>
      This dashboard has no policy (<code>PAYOUT_POLICY_FILE</code>), so it cannot check the rules. If the payout is
      held, the reason shown is what the worker found last.
    </p>`;
  }
  if (rules.kind === 'unusable') return html`<p><bdi>${rules.message}</bdi></p>`;
  const { decision, verdicts, unverified, unknown, hash, otherHash } = rules;
  return html`<p>By the rules, the payout ${describeVerdict(decision.verdict)}.</p>
    ${unverified !== undefined && html`<p><strong>Its signature does not count, so it is held whatever the rules say.</strong></p>`}
    ${otherHash !== undefined && html`<p class="trouble">The sending worker reports another policy: <bdi class="mono">${otherHash.slice(0, 12)}</bdi>.</p>`}
    ${table(
      'What each rule says of the payout',
      ['Rule', 'What it means', 'The payout'],
      verdicts.map(
        ({ rule, meaning, text, verdict }) =>
          html`<tr class="${verdict === undefined || verdict.kind === 'send' ? 'passes' : 'holding'}">
            <th scope="row"><bdi>${rule}</bdi></th>
            ${tableCell('wraps', html`<bdi>${meaning}</bdi>`)} ${tableCell('wraps', html`<bdi>${text}</bdi>`)}
          </tr>`,
      ),
    )}
    ${unknown.map((each) => html`<p class="quiet">Not known to this dashboard: ${each}.</p>`)}
    <p class="quiet">
      Policy <span class="mono">${hash.slice(0, 12)}</span>, as this dashboard reads it. The worker decides.
    </p>`;
}
