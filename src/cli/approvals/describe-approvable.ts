import type { SignedApproval } from '../../ledger/control-record.js';
import { formatExact, formatCount, formatDuration, formatTimeUtc } from '../../base/format.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import type { MissingApprovals, Payout } from '../../ledger/payout.js';
import type { ApprovalCheck, DecidablePayout } from '../../control/approvals/approvable-payout.js';
import type { CliContext } from '../context/cli-context.js';
import { CurrencyTotals, formatTotals } from '../import/currency-totals.js';
import { type Fact, formatFacts, formatTable } from '../output/format-table.js';

export interface ShownPayout extends DecidablePayout {
  readonly approvals: readonly ApprovalCheck[];
}

type Colours = CliContext['colours'];

/** For example `1 more person of finance`. */
export function describeNeeds({ by, persons }: MissingApprovals): string {
  return `${persons} more ${persons === 1 ? 'person' : 'people'} of ${by}`;
}

export function describeApproval({ approval, person, message }: ApprovalCheck): string {
  const said = describeDecision(approval);
  if (message !== undefined) return `${said}: does not count, ${message}`;
  const why = approval.reason === '' ? '' : `: ${approval.reason}`;
  return `${said} (${person ?? ''}) at ${formatTimeUtc(approval.at)}${why}`;
}

export function describeUnverified(approval: SignedApproval): string {
  return `${describeDecision(approval)}: not verified, for want of PAYOUT_KEYS_FILE`;
}

function describeDecision({ decision, by }: SignedApproval): string {
  return `${SAID[decision]} by key ${by}`;
}

const SAID = { approve: 'approved', reject: 'rejected', unreject: 'rejection taken back' } as const;

export function waitedMs({ updatedAt }: Payout, now: number): number {
  return Math.max(0, now - Date.parse(updatedAt));
}

/** The name is not signed: anyone who can write to Redis can change it. */
function describeCurrency(paymentId: number, currencies: readonly Currency[]): string {
  const name = currencies.find((known) => known.paymentId === paymentId)?.name;
  return name === undefined ? `payment id ${paymentId}` : `payment id ${paymentId} (${name}, says Redis)`;
}

/** All signed fields in full, then what Redis says of the payout. */
function describeOne(
  { payout, signer, fault, about, approvals }: ShownPayout,
  currencies: readonly Currency[],
  colours: Colours,
  now: number,
): string {
  const { held, signed } = payout;
  const facts: readonly Fact[] = [
    ['amount', formatExact(payout.amount)],
    ['currency', describeCurrency(payout.paymentId, currencies)],
    ['symbol', payout.symbol],
    ['address', payout.addressTo],
    ['reference', payout.reference],
    ['metadata', signed?.metadata],
    ['not before', payout.notBefore && formatTimeUtc(payout.notBefore)],
    ['requested by', about.requestedBy],
    [
      'signed by',
      signer === undefined
        ? `NOT VERIFIED: ${fault ?? ''}`
        : `key ${signer.name} (${signer.person}), until ${formatTimeUtc(signed?.expiresAt ?? '')}`,
    ],
    ['intent', about.intent],
    [`${payout.state} for`, formatDuration(waitedMs(payout, now))],
    ['why, says Redis', held && `${held.rule ?? held.kind}: ${held.message}`],
    ['needs, says Redis', held?.needs && describeNeeds(held.needs)],
    ...approvals.map((approval): Fact => ['said before', describeApproval(approval)]),
  ];
  return `${colours.bold(payout.payoutId)}\n${formatFacts(colours, facts)}`;
}

function describeMany(shown: readonly ShownPayout[], currencies: readonly Currency[]): string {
  const head = ['PAYOUT', 'AMOUNT', 'PAYMENT ID', 'ADDRESS', 'SIGNED BY', 'REQUESTED BY', 'WHY, SAYS REDIS'];
  const totals = new CurrencyTotals();
  const rows = shown.map(({ payout, signer, about: { requestedBy = '' } }) => {
    totals.add(payout);
    const why = payout.held === undefined ? payout.state : `${payout.held.rule ?? ''} ${payout.held.message}`.trim();
    const { payoutId, amount, paymentId, symbol, addressTo } = payout;
    const currency = symbol === undefined ? String(paymentId) : `${paymentId}/${symbol}`;
    return [payoutId, formatExact(amount), currency, addressTo, signer?.person ?? 'NOT VERIFIED', requestedBy, why];
  });
  const names = currencies.length === 0 ? '' : 'The names of currencies are not signed: the payment id is.\n';
  return [
    formatTable([head, ...rows], [1, 2], [0, 1, 2, 3]),
    `\n${formatCount(shown.length, 'payout')}${shown.every(({ signer }) => signer) ? ', verified with the keyring' : ''}\n`,
    `${formatTotals(totals.list(), currencies)}${names}`,
  ].join('');
}

export function describeApprovable(
  shown: readonly ShownPayout[],
  currencies: readonly Currency[],
  colours: Colours,
  now: number,
): string {
  const [only] = shown;
  if (only !== undefined && shown.length === 1) return describeOne(only, currencies, colours, now);
  return describeMany(shown, currencies);
}
