import { expect, it } from '@jest/globals';
import type { MemberReport } from '../../../src/ledger/member-registry.js';
import { OwnReport } from '../../../src/worker/sharing/own-report.js';
import { ManualClock } from '../../doubles/manual-clock.js';

type Content = Omit<MemberReport, 'version'>;

const NOTHING: Content = { folder: 'f', accounts: [1, 2], unfit: [], claims: [], held: [] };
const CLAIMS_ONE: Content = { ...NOTHING, claims: [1] };
const CLAIMS_BOTH: Content = { ...NOTHING, claims: [1, 2] };

/** @returns the version that was published */
function tell(own: OwnReport, content: Content): number | undefined {
  const report = own.due(content);
  if (report !== undefined) own.notePublished(report);
  return report?.version;
}

it('is published when it changes, with a higher version, and every thirty seconds', async () => {
  const clock = new ManualClock();
  const own = new OwnReport(clock);
  expect([tell(own, NOTHING), tell(own, NOTHING), tell(own, CLAIMS_ONE)]).toEqual([1, undefined, 2]);
  expect(own.nextHeartbeat()).toEqual({ count: 1, version: 2 });
  await clock.advance(29_000);
  expect(tell(own, CLAIMS_ONE)).toBeUndefined();
  await clock.advance(1_000);
  expect(tell(own, CLAIMS_ONE)).toBe(2);
  own.publishAgain();
  expect([tell(own, CLAIMS_ONE), tell(own, CLAIMS_ONE)]).toEqual([2, undefined]);
  expect(own.nextHeartbeat()).toEqual({ count: 2, version: 2 });
});

it('never has the version of another one that may have been written without a reply', () => {
  const own = new OwnReport(new ManualClock());
  tell(own, NOTHING);
  expect(own.due(CLAIMS_ONE)).toMatchObject({ version: 2 });
  expect(own.nextHeartbeat()).toMatchObject({ version: 1 });
  expect(own.due(CLAIMS_BOTH)).toMatchObject({ version: 3, claims: [1, 2] });
  // What was published before is not what is there any more.
  expect(own.due(NOTHING)).toMatchObject({ version: 4, claims: [] });
  expect([tell(own, NOTHING), tell(own, NOTHING)]).toEqual([4, undefined]);
});
