import { availableParallelism, loadavg } from 'node:os';
import { afterAll, beforeAll, describe, expect, jest } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { launchChromium } from '../dashboard/support/launch-chromium.js';
import { itInLanes } from '../told/lanes.js';
import { DrillRig } from './drill-rig.js';
import { findInIndex, titleOf } from './runbook-index.js';
import { type Sight, SIGHTS } from './sights.js';
import { type Drill, DRILLS } from './table.js';

jest.setTimeout(900_000);

/** On a quiet machine; under load, that many times longer as processes wait for a processor. */
const SHOWN_WITHIN_S = 6;
const loadFactor = () => Math.min(5, Math.max(1, (loadavg()[0] ?? 0) / availableParallelism()));

const only = process.env['DRILL']?.split(',');
let browser: Browser;

const isChosen = ({ name }: { readonly name: string }) => only?.some((part) => name.includes(part)) ?? true;

describe('on a phone, in the dark theme', () => {
  beforeAll(async () => {
    browser = await launchChromium();
  });
  itInLanes(3, [...DRILLS, ...SIGHTS].filter(isChosen), carryOut);
  afterAll(async () => browser.close());
});

async function carryOut(drill: Drill | Sight) {
  const [tone, name] = drill.shows;
  const [headline] = HEADLINES[name];
  const rig = await DrillRig.open<DrillRig>(drill);
  try {
    await drill.prepare?.(rig);
    await rig.startSender();
    await rig.openPage(browser);
    await rig.untilShown('good', 'Idle');
    if ('repair' in drill) {
      await rig.enqueue(12, 'P');
      await rig.untilShown('good', 'Sending');
      await rig.untilSent(1);
    }

    const since = await drill.happens(rig);
    const seconds = await rig.untilShown(tone, headline, typeof since === 'number' ? since : undefined);
    expect(seconds).toBeLessThanOrEqual(SHOWN_WITHIN_S * loadFactor());
    await rig.photograph(drill.name, `${headline}, after ${seconds.toFixed(1)} s`);
    await expectSight(rig, drill);

    if (!('repair' in drill)) return;
    await rig.expectSameWords(headline);
    await drill.repair(rig);
    await rig.expectRecovery();
  } finally {
    await rig.close();
  }
}

/** The first screen has all that the operator needs, and its link leads to what to do. */
async function expectSight(rig: DrillRig, { shows: [, name, command], ...drill }: Drill | Sight) {
  const [headline, runbook]: readonly [string, string?] = HEADLINES[name];
  const { text, runbook: href, belowFold, isCut } = await rig.read();
  expect(text).toContain(command.replace('ACCOUNT', String(rig.platformId)));
  expect({ belowFold, isCut }).toEqual({ belowFold: '', isCut: false });
  if (runbook === undefined) return;
  expect(href).toMatch(RegExp(`runbooks/${runbook}$`));
  expect(await rig.readRunbook(href)).toContain(titleOf(runbook).replaceAll("'", '&#39;'));
  if (drill.finds === undefined) return;
  const first = findInIndex(drill.indexed ?? headline);
  await rig.expectFound(first.command, drill.finds);
}
