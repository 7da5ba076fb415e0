import { existsSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { HEADLINES } from '../../src/operator/account-headline.js';
import { type Stop, STOPS } from '../../src/operator/stops.js';
import { WAYS } from '../told/ways/index.js';

/** Each stop is caused by real processes in test/told, which looks at status, `/readyz`, doctor and dashboard. */

it.each(Object.entries<Stop>(STOPS))(
  'the stop %s is caused by a test, which finds what the table says',
  (name, stop) => {
    const ways = WAYS.filter((way) => way.stop === name);
    expect(ways).not.toEqual([]);
    for (const { told } of ways) {
      expect([told.readyz.status, HEADLINES[told.headline]]).toEqual([
        stop.readyz ?? 'none',
        [stop.words, stop.runbook],
      ]);
    }
  },
);

it.each(Object.values<Stop>(STOPS).flatMap(({ file, runbook }) => [file, `docs/runbooks/${runbook}.md`]))(
  'the table of stops names %s, which exists',
  (path) => {
    expect(existsSync(new URL(`../../${path}`, import.meta.url))).toBe(true);
  },
);
