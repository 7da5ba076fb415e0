import { Gauge, type Registry } from 'prom-client';
import type { UnexplainedDrop } from '../../ledger/reconciliation.js';
import type { AccountMoney } from './account-snapshot.js';

/** More currencies than this are left out of the metrics: each is a series of every worker. */
const MOST_CURRENCIES = 50;

/** The gauges of what is queued and from what it is paid. Amounts lose digits here; nothing is decided by them but alerts. */
export type MoneyGauges = ReturnType<typeof createMoneyGauges>;

export function createMoneyGauges(registry: Registry) {
  const registers = [registry];
  const ofCurrency = (name: string, help: string): Gauge<'platform_id' | 'currency'> =>
    new Gauge({ name, help, labelNames: ['platform_id', 'currency'], registers });
  return {
    balance: ofCurrency('payouts_balance', 'The balance as the gateway stated it within the last 15 minutes.'),
    balanceNeeded: ofCurrency(
      'payouts_balance_needed',
      'What is queued and has to be paid from the balance of the same labels, in the same unit.',
    ),
    balanceAge: new Gauge({
      name: 'payouts_balance_age_seconds',
      help: 'Since the gateway stated the balance last.',
      labelNames: ['platform_id'],
      registers,
    }),
    unexplained: ofCurrency(
      'payouts_balance_unexplained',
      'What the balance lost without a payout that explains it, until an operator accepts it; 0 while it adds up.',
    ),
    queuedAmount: new Gauge({
      name: 'payouts_queued_amount',
      help: 'The sum of the queued payouts of a currency.',
      labelNames: ['platform_id', 'payment_id', 'currency'],
      registers,
    }),
  };
}

export function setMoneyGauges(
  gauges: MoneyGauges,
  platformId: string,
  { queued, currencies, covers, balanceAgeMs, unexplained }: AccountMoney,
): void {
  const account = { platform_id: platformId };
  if (balanceAgeMs !== undefined) gauges.balanceAge.set(account, balanceAgeMs / 1_000);
  // A gateway may list every currency that it knows, most of which the account never uses.
  const used = covers.filter((cover) => cover.queued !== '0' || cover.balance !== '0');
  for (const { currency, balance, queued: needed } of used.slice(0, MOST_CURRENCIES)) {
    gauges.balance.set({ ...account, currency }, Number(balance));
    if (needed !== undefined) gauges.balanceNeeded.set({ ...account, currency }, Number(needed));
  }
  for (const { currency, amount } of mostImportant(unexplained)) {
    gauges.unexplained.set({ ...account, currency }, Number(amount));
  }
  for (const { paymentId, amount } of queued.slice(0, MOST_CURRENCIES)) {
    const currency = currencies.find((known) => known.paymentId === paymentId)?.name ?? '';
    gauges.queuedAmount.inc({ ...account, payment_id: String(paymentId), currency }, Number(amount));
  }
}

/** Those with a drop first: no limit hides one. */
function mostImportant(unexplained: readonly UnexplainedDrop[]): readonly UnexplainedDrop[] {
  const dropped = unexplained.filter(({ amount }) => amount !== '0');
  const others = unexplained.filter(({ amount }) => amount === '0');
  return [...dropped, ...others.slice(0, MOST_CURRENCIES)];
}
