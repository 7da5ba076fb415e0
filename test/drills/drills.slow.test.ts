import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { launchChromium } from '../dashboard/support/launch-chromium.js';
import { DrillRig, loadFactor } from './drill-rig.js';
import { type Drill, DRILLS } from './table.js';

jest.setTimeout(900_000);

/** On a quiet machine; under load, that many times longer as processes wait for a processor. */
const SHOWN_WITHIN_S = 6;
const AT_A_TIME = 2;
const WAITING = 12;

const results = new Map<Drill, Promise<void>>();
let browser: Browser;

const only = process.env['DRILL'];
const drills = DRILLS.filter(({ name }) => only === undefined || only.split(',').includes(name));

beforeAll(async () => {
  browser = await launchChromium();
  const lanes: Promise<void>[] = [];
  drills.forEach((drill, index) => {
    const before = lanes[index % AT_A_TIME] ?? Promise.resolve();
    const result = before.then(async () => carryOut(drill));
    results.set(drill, result);
    lanes[index % AT_A_TIME] = result.catch(() => undefined);
  });
});

afterAll(async () => {
  await Promise.allSettled(results.values());
  await browser.close();
});

describe('an operator knows within seconds, and repairs', () => {
  it.each(drills)('$name', async (drill) => results.get(drill));
});

async function carryOut(drill: Drill): Promise<void> {
  const { tone, headline, runbook, command } = drill;
  const rig = await DrillRig.start(drill);
  try {
    await drill.prepare?.(rig);
    await rig.startWorker();
    await rig.openPage(browser);
    await rig.untilShown('good', 'Idle');
    const idle = await rig.scrape();
    await rig.enqueue(WAITING, 'P');
    await rig.untilShown('good', 'Sending');
    await rig.untilSent(1);
    const start = await rig.scrape();

    const calledAt = performance.now();
    const since = await drill.happens(rig);
    const seconds = await rig.untilShown(tone, headline, typeof since === 'number' ? since : calledAt);
    expect(seconds).toBeLessThanOrEqual(SHOWN_WITHIN_S * loadFactor());

    const { text, markup } = await rig.read();
    expect(text).toContain(command.replace('ACCOUNT', String(rig.platformId)));
    if (runbook !== undefined) expect(markup).toMatch(RegExp(`runbooks/${runbook}\\b`));
    await Promise.all([rig.expectSameWords(headline), rig.expectAlerts({ idle, start }, drill)]);

    await drill.repair(rig);
    await rig.expectRecovery();
  } finally {
    await rig.close();
  }
}
