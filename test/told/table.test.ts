import { expect, it } from '@jest/globals';
import { alertRules } from '../docs/support/alert-rules.js';
import { WAYS } from './ways/index.js';

/** Alerts about what has happened to money, access or a process, or about other alerts, while payouts go out. */
const OF_EVENTS = [
  ...['PayoutsPaidLate', 'PayoutsSentTooClose', 'PayoutsFailed', 'PayoutsKeysReloadFailed'],
  ...['PayoutsPolicyChanged', 'PayoutsPolicyNearlyUsed', 'PayoutsPolicyReloadFailed'],
  // Payouts go out: alerts.slow.test.ts makes these two.
  ...['PayoutsExporterMissing', 'PayoutsHeldTooLong'],
  ...['PayoutsDashboardGuessed', 'PayoutsNotificationsLate', 'PayoutsProcessRestarts'],
];

it('each alert answers a way to stand still, or tells of an event, and no way waits for another', () => {
  const answers = [...new Set(WAYS.flatMap(({ told }) => told.alerts))];
  expect([...answers, ...OF_EVENTS].sort()).toEqual(alertRules.map(({ alert }) => alert).sort());
});
