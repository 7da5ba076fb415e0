import { expect, it } from '@jest/globals';
import { alertRules } from '../docs/support/alert-rules.js';
import { WAYS } from './ways/index.js';

/** Alerts about what has happened to money, access or a process, or about other alerts, while payouts go out. */
const OF_EVENTS = [
  ...['PayoutsPaidLate', 'PayoutsSentTooClose', 'PayoutsFailed', 'PayoutsKeysReloadFailed'],
  ...['PayoutsPolicyChanged', 'PayoutsPolicyNearlyUsed', 'PayoutsPolicyReloadFailed'],
  ...['PayoutsDashboardGuessed', 'PayoutsNotificationsLate', 'PayoutsProcessRestarts'],
];

it('each alert answers a way to stand still, or tells of an event', () => {
  const answers = new Set(WAYS.flatMap(({ told }) => told.alerts));
  const others = alertRules.map(({ alert }) => alert).filter((alert) => !answers.has(alert));
  expect(others.sort()).toEqual([...OF_EVENTS].sort());
});

it('each way has its three answers, of alerts that exist', () => {
  const known = alertRules.map(({ alert }) => alert);
  for (const { name, told } of WAYS) {
    const { alerts, readyz, doctor } = told;
    expect({ name, alerts: alerts.length > 0, known: alerts.every((alert) => known.includes(alert)) }).toEqual({
      name,
      alerts: true,
      known: true,
    });
    expect(readyz.words !== '' || readyz.status === 'none').toBe(true);
    expect(doctor.words.length).toBeGreaterThan(3);
  }
  expect(new Set(WAYS.map(({ name }) => name)).size).toBe(WAYS.length);
});
