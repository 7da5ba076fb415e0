import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import {
  FINAL_STATES,
  OPERATOR_STATES,
  PAYOUT_STATES,
  reachableFrom,
  SETTLED_STATES,
  STATES_WITH_JOB,
  statesInQueueOf,
  TRANSITIONS,
  UNSENT_STATES,
  URGENT_STATES,
  waitsFor,
  WATCHED_STATES,
} from '../../src/ledger/states.js';

describe('the states', () => {
  it('are final where no transition of normal operation leads on, and wait for someone where one does', () => {
    for (const state of PAYOUT_STATES) {
      expect([state, reachableFrom(state).length === 0]).toEqual([state, FINAL_STATES.includes(state)]);
      expect([state, waitsFor(state) === null]).toEqual([state, FINAL_STATES.includes(state)]);
    }
  });

  it('can be cancelled where nothing was sent, and turn into unknown where the ledger forgot a send', () => {
    const ways = TRANSITIONS.map(({ from, to }) => `${from} ${to}`);
    for (const state of UNSENT_STATES)
      expect(ways).toEqual(expect.arrayContaining([`${state} cancelled`, `${state} unknown`]));
  });

  it('are in the lists that the ledger, the queues and the dashboard go by', () => {
    expect(STATES_WITH_JOB).toEqual(['queued', 'in_progress']);
    expect(STATES_WITH_JOB.map(statesInQueueOf)).toEqual([['queued', 'sending'], ['in_progress']]);
    expect(WATCHED_STATES).toEqual(['queued', 'held', 'sending', 'in_progress', 'unknown']);
    expect(UNSENT_STATES).toEqual(['queued', 'held', 'rejected']);
    expect(SETTLED_STATES).toEqual(['completed', 'failed', 'cancelled', 'held', 'rejected', 'unknown']);
    expect(URGENT_STATES).toEqual(['unknown', 'rejected', 'failed', 'held']);
  });

  it('have an alert where an operator has to decide', () => {
    const alerts = readFileSync('docs/alerts.yml', 'utf8');
    for (const state of OPERATOR_STATES) {
      expect(alerts).toContain(`payouts list --account {{ $labels.platform_id }} --state ${state}`);
    }
  });
});
