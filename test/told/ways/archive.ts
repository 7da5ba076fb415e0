import { systemClock } from '../../../src/base/clock.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import type { Rig } from '../support/rig.js';
import { told, type Way } from '../way.js';

const DAY_MS = 24 * 60 * 60 * 1_000;

/** A payout that ended three days ago. */
async function endOldPayout({ client, platformId }: Rig): Promise<void> {
  const clock = { ...systemClock, wallNow: () => Date.now() - 3 * DAY_MS };
  const ledger = new PayoutLedger(connectLedger(client, platformId, clock));
  await ledger.enqueue([aPayout('old')]);
  await ledger.change({ payoutId: 'old', from: 'queued', to: 'cancelled' });
}

/** Payouts go out, but those of before do not go. */
export const ARCHIVE_WAYS: readonly Way[] = [
  {
    name: 'The archive of old payouts cannot be written',
    environment: { PAYOUT_RETENTION_DAYS: '1', PAYOUT_ARCHIVE_DIR: '/dev/null' },
    happens: async (rig) => rig.replaceWorker(async () => endOldPayout(rig)),
    told: told(
      'idle',
      ['PayoutsArchiveFails'],
      [200, 'Old payouts stay in Redis'],
      [0, 'archive folder', 'cannot be written'],
      'disk',
    ),
  },
];
