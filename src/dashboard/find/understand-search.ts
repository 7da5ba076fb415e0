import { amountField } from '../../fields.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import { isPayoutState } from '../../ledger/states.js';
import { isDay, type ListQuery } from './list-query.js';

/** Shorter texts without spaces are rather a part of a reference. */
const SHORTEST_ADDRESS = 20;

/**
 * What a text in the search field is taken for that names no payout, txhash or batch: an amount, also with the name of its
 * currency as the pages show it; a day; a state; an address; otherwise a part of a reference.
 */
export function understandSearch(text: string, currencies: readonly Currency[]): ListQuery['texts'] {
  const currency = currencies.find(({ name }) => text.endsWith(` ${name}`));
  const amount = currency === undefined ? text : text.slice(0, -currency.name.length).trim();
  if (amountField.safeParse(amount).success) return { amount };
  if (isDay(text)) return { since: text, until: text };
  const state = text.toLowerCase().replaceAll(' ', '_');
  if (isPayoutState(state)) return { state };
  if (text.length >= SHORTEST_ADDRESS && !/\s/.test(text)) return { address: text };
  return { reference: text };
}
