// Preloaded into a worker process by `node --import`: ends it with SIGKILL once payouts are in the archive, before they are
// removed from Redis.
import { PayoutArchive } from '../../../dist/archive/payout-archive.js';

const { keep } = PayoutArchive.prototype;
PayoutArchive.prototype.keep = async function (...args) {
  await keep.apply(this, args);
  process.kill(process.pid, 'SIGKILL');
  await new Promise(() => undefined);
};
