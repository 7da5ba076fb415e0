import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { renderTold } from '../../scripts/told-doc.js';
import { alertRules } from '../docs/support/alert-rules.js';
import { WAYS } from './ways/index.js';

/** Alerts about what has happened to money, access or a process, or about other alerts, while payouts go out. */
const OF_EVENTS = [
  ...['PayoutsPaidLate', 'PayoutsSentTooClose', 'PayoutsFailed', 'PayoutsKeysReloadFailed'],
  ...['PayoutsPolicyChanged', 'PayoutsPolicyNearlyUsed', 'PayoutsPolicyReloadFailed'],
  // Payouts go out: alerts.test.ts makes these two.
  ...['PayoutsExporterMissing', 'PayoutsHeldTooLong'],
  ...['PayoutsDashboardGuessed', 'PayoutsNotificationsLate', 'PayoutsProcessRestarts'],
];

it('each alert answers a way to stand still, or tells of an event', () => {
  const answers = new Set(WAYS.flatMap(({ told }) => told.alerts));
  const others = alertRules.map(({ alert }) => alert).filter((alert) => !answers.has(alert));
  expect(others.sort()).toEqual([...OF_EVENTS].sort());
});

it.each(WAYS)('the runbook of the first alert answers: $name', ({ told: { alerts, runbook } }) => {
  const rule = alertRules.find(({ alert }) => alert === alerts[0]);
  expect(`docs/runbooks/${runbook}.md`).toBe(rule?.annotations.runbook);
});

it('the document has the table of all ways', () => {
  const page = readFileSync(new URL('../../docs/monitoring.md', import.meta.url), 'utf8');
  expect(renderTold(page)).toBe(page);
});

it('each way has its answers, of alerts that exist', () => {
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
