import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readIndexPage, readSendFacts } from '../../ledger/payment-facts.js';
import type { Reconciliation } from '../../ledger/reconciliation.js';
import { countPayouts, readEventsAfter } from '../../ledger/state-events.js';
import { OPEN_STATES, OpenSends } from './open-sends.js';
import { currentRates, mergeRates, parseRates, type Market } from './rates.js';

const PAGE = 500;

/** The open sends, as of an event of the ledger. */
export interface FollowedSends {
  position: string;
  readonly sends: OpenSends;
}

/**
 * Reads which sends are open.
 * @param position - the last event that was counted; undefined to begin with the newest
 * @param known - what stands of fees and rates
 * @throws RedisUnavailableError
 */
export async function openSends(
  connection: LedgerConnection,
  position: string | undefined,
  known: Pick<Reconciliation, 'fees' | 'rates'> | undefined,
  market: Market,
): Promise<FollowedSends> {
  // Before the indexes: of what changes meanwhile the event is applied a second time, and none is left out.
  const start = position ?? (await countPayouts(connection)).newestEventId;
  const fees = new Map(Object.entries(known?.fees ?? {}).map(([id, fee]) => [Number(id), fee]));
  const sends = new OpenSends(fees, mergeRates(parseRates(known?.rates ?? {}), currentRates(market)));
  for (const state of OPEN_STATES) {
    for (let after: string | undefined = ''; after !== undefined;) {
      const page = await readIndexPage(connection, state, { after, limit: PAGE });
      for (const { payoutId, facts } of page.payouts) sends.add(payoutId, facts);
      after = page.next;
    }
  }
  return { position: start, sends };
}

/**
 * Applies the events up to the newest.
 * @returns false where the stream does not have all of them
 * @throws RedisUnavailableError
 */
export async function followSends(connection: LedgerConnection, followed: FollowedSends): Promise<boolean> {
  for (;;) {
    const events = await readEventsAfter(connection, followed.position, PAGE);
    if (events === undefined) return false;
    const payoutIds = [...new Set(events.flatMap(({ change }) => (change === undefined ? [] : [change.payoutId])))];
    const read = await readSendFacts(connection, payoutIds);
    const facts = new Map(payoutIds.map((payoutId, index) => [payoutId, read[index]]));
    for (const event of events) {
      followed.sends.apply(event, facts.get(event.change?.payoutId ?? ''));
      followed.position = event.eventId;
    }
    if (events.length < PAGE) return true;
  }
}
