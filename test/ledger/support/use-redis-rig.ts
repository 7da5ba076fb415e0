import { afterEach, beforeEach } from '@jest/globals';
import type { SenderLedger } from '../../../src/ledger/sender-ledger.js';
import type { LedgerRig } from '../contract/ledger-rig.js';
import { makeRedisRig } from './redis-rig.js';

/** Of the running test. */
export let rig: LedgerRig;
export let ledger: SenderLedger;

/** Makes an empty ledger before each test, and closes it after it. */
export function useRedisRig(): void {
  beforeEach(() => {
    rig = makeRedisRig();
    ({ ledger } = rig);
  });
  afterEach(async () => rig.close());
}
