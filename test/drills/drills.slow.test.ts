import { availableParallelism, loadavg } from 'node:os';
import { afterAll, beforeAll, describe, expect, jest } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { launchChromium } from '../dashboard/support/launch-chromium.js';
import { itInLanes } from '../told/lanes.js';
import { DrillRig } from './drill-rig.js';
import { type Drill, DRILLS } from './table.js';

jest.setTimeout(900_000);

/** On a quiet machine; under load, that many times longer as processes wait for a processor. */
const SHOWN_WITHIN_S = 6;
const loadFactor = () => Math.min(5, Math.max(1, (loadavg()[0] ?? 0) / availableParallelism()));

const only = process.env['DRILL']?.split(',');
let browser: Browser;

describe('an operator knows within seconds, and repairs', () => {
  beforeAll(async () => {
    browser = await launchChromium();
  });
  itInLanes(
    2,
    DRILLS.filter(({ name }) => only?.includes(name) ?? true),
    carryOut,
  );
  afterAll(async () => browser.close());
});

async function carryOut(drill: Drill) {
  const [tone, name, command] = drill.shows;
  const [headline, runbook]: readonly [string, string?] = HEADLINES[name];
  const rig = await DrillRig.open<DrillRig>(drill);
  try {
    await drill.prepare?.(rig);
    await rig.startWorker();
    await rig.openPage(browser);
    await rig.untilShown('good', 'Idle');
    await rig.enqueue(12, 'P');
    await rig.untilShown('good', 'Sending');
    await rig.untilSent(1);

    const since = await drill.happens(rig);
    const seconds = await rig.untilShown(tone, headline, typeof since === 'number' ? since : undefined);
    expect(seconds).toBeLessThanOrEqual(SHOWN_WITHIN_S * loadFactor());

    const { text, markup } = await rig.read();
    expect(text).toContain(command.replace('ACCOUNT', String(rig.platformId)));
    if (runbook !== undefined) expect(markup).toMatch(RegExp(`runbooks/${runbook}\\b`));
    await rig.expectSameWords(headline);

    await drill.repair(rig);
    await rig.expectRecovery();
  } finally {
    await rig.close();
  }
}
