import { formatAlternatives, formatCount } from '../../format.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import type { PayoutState } from '../../ledger/states.js';
import { formatTotals } from '../import/describe-import.js';
import type { Survey } from './survey-payouts.js';

/** What an operator has chosen, counted and added up by currency. @param from - the states from which the change leads */
export function describeSurvey(
  { chosen, totals, changedBefore, others }: Survey,
  from: readonly PayoutState[],
  currencies: readonly Currency[],
): string {
  const states = formatAlternatives(from);
  const left = Object.entries(others).map(([state, count]) => `, ${count} ${state} left as they are`);
  const table = chosen.length === 0 ? '' : formatTotals(totals, currencies);
  const again =
    changedBefore === 0
      ? ''
      : `${formatCount(changedBefore, 'payout')} left as they are: decided so before, for the same reason, and ${states} again since. Look at each, or give another reason.\n`;
  return `${formatCount(chosen.length, 'payout')} ${states}${left.join('')}\n${again}${table}`;
}
