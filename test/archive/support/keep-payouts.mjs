// Keeps payouts, a batch of some megabytes after the other, until it is killed. After each it says how many are on disk.
// ARGV: dir, platformId, prefix of the payoutIds
import { randomBytes } from 'node:crypto';
import { PayoutArchive } from '../../../dist/archive/payout-archive.js';

const [dir, platformId, prefix] = process.argv.slice(2);
const BATCH = 500;
const archive = new PayoutArchive({ dir, platformId: Number(platformId) });
const at = '2030-01-07T10:00:00.000Z';
for (let kept = 0; ; kept += BATCH) {
  const payouts = Array.from({ length: BATCH }, (_, index) => ({
    payoutId: `${prefix}-${kept + index}`,
    state: 'completed',
    updatedAt: at,
    history: [],
    metadata: randomBytes(4_096).toString('base64'),
  }));
  await archive.keep(payouts);
  archive.forget(payouts.map(({ payoutId }) => payoutId));
  process.stdout.write(`${kept + BATCH}\n`);
}
