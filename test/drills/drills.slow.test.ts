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

const results = new Map<Drill, Promise<string>>();
let browser: Browser;

const only = process.env['DRILL'];
const drills = DRILLS.filter(({ name }) => only === undefined || only.split(',').includes(name));

beforeAll(async () => {
  browser = await launchChromium();
  const lanes = Array.from({ length: AT_A_TIME }, async () => Promise.resolve());
  drills.forEach((drill, index) => {
    const lane = index % AT_A_TIME;
    const result = (lanes[lane] ?? Promise.resolve()).then(async () => carryOut(drill));
    results.set(drill, result);
    lanes[lane] = result.then(
      (row) => void process.stderr.write(`${row}\n`),
      (error: unknown) => void process.stderr.write(`${drill.name}: ${(error as Error).message}\n`),
    );
  });
});

afterAll(async () => {
  await Promise.allSettled(results.values());
  await browser.close();
});

describe('an operator knows within seconds, and repairs', () => {
  it.each(drills)('$name', async (drill) => {
    await results.get(drill);
  });
});

async function carryOut(drill: Drill): Promise<string> {
  const { name, tone, headline, runbook, alerts } = drill;
  const open = await DrillRig.open(drill);
  try {
    await drill.prepare?.(open);
    await open.rig.startWorker();
    await open.openPage(browser);
    await open.untilShown('good', 'Idle');
    const idle = await open.rig.scrape();
    await open.enqueue(WAITING, 'P');
    await open.untilShown('good', 'Sending');
    await open.untilSent(1);
    const start = await open.rig.scrape();

    const startedAt = performance.now();
    const since = (await drill.happens(open)) ?? startedAt;
    const seconds = await open.untilShown(tone, headline, since);
    const limit = SHOWN_WITHIN_S * loadFactor();
    expect({ seconds, isInTime: seconds <= limit }).toEqual({ seconds, isInTime: true });

    const { text, markup } = await open.read();
    expect(text).toContain(drill.command.replace('ACCOUNT', String(open.rig.platformId)));
    if (runbook !== undefined) expect(markup).toMatch(RegExp(`runbooks/${runbook}\\b`));
    await Promise.all([open.expectSameWords(headline), open.expectAlerts({ idle, start }, drill)]);

    await drill.repair(open);
    await open.expectRecovery();
    const row = [
      name,
      headline,
      drill.command,
      runbook ?? '–',
      alerts.join(', ') || 'none',
      seconds.toFixed(1),
      limit.toFixed(0),
    ];
    return `| ${row.join(' | ')} |`;
  } finally {
    await open.close();
  }
}
