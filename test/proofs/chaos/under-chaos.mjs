// Preloaded into a worker process by `node --import`, so that the code under test needs no hooks.
// TIME_SCALE=8: the process lives eight times as fast. Its monotonic clock, its sleeps, the waits between two questions
// about a payout, BullMQ's limiter and BullMQ's locks are scaled alike, so that it keeps its rules at an eighth of the
// interval. The wall clock stays as it is.
// The message `stop` of the parent stops the process (SIGSTOP) between two turns of its event loop: a signal could strike
// in the middle of the step that checks and writes, which assumption A4 excludes.
import { Worker } from 'bullmq';
import { systemClock } from '../../../dist/base/clock.js';
import { LOOK_UP_WAITS_MS } from '../../../dist/ledger/order-look-up.js';
import { STALLED_JOBS } from '../../../dist/worker/job-worker.js';

const scale = Number(process.env.TIME_SCALE ?? 1);

if (scale !== 1) {
  const { now, sleep } = systemClock;
  systemClock.now = () => now() * scale;
  systemClock.sleep = (ms, signal) => sleep(ms / scale, signal);
  STALLED_JOBS.lockDuration /= scale / 2;
  STALLED_JOBS.stalledInterval /= scale / 2;
  LOOK_UP_WAITS_MS.forEach((ms, index) => (LOOK_UP_WAITS_MS[index] = ms / scale));
  const { run } = Worker.prototype;
  Worker.prototype.run = function () {
    if (this.opts.limiter !== undefined) this.opts.limiter.duration /= scale;
    return run.call(this);
  };
}

process.on('message', (message) => {
  if (message === 'stop') process.kill(process.pid, 'SIGSTOP');
});
// Nobody is left to end this process, maybe since before it came here.
const die = () => process.kill(process.pid, 'SIGKILL');
process.on('disconnect', die);
if (!process.connected) die();
// The channel must not keep alive a worker that has ended in good order.
process.channel?.unref();
