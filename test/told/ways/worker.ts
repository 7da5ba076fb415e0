import type { Way } from '../way.js';

/** No process works. */
export const WORKER_WAYS: readonly Way[] = [
  {
    name: 'The worker was killed, and none stands by',
    happens: async ({ world, worker }) => {
      await worker.end();
      await world.enqueue(1);
    },
    told: {
      headline: 'silent',
      alerts: ['PayoutsWorkerMissing'],
      readyz: { status: 'none', words: '' },
      doctor: { exit: 1, check: 'sender', words: 'sent no heartbeat' },
      runbook: 'worker-missing',
    },
  },
  {
    name: 'The worker hangs, and none stands by',
    happens: async ({ world, worker }) => {
      worker.kill('SIGSTOP');
      await world.enqueue(1);
    },
    told: {
      headline: 'silent',
      alerts: ['PayoutsWorkerMissing'],
      readyz: { status: 'none', words: '' },
      doctor: { exit: 1, check: 'sender', words: 'and 1 payout queued' },
      runbook: 'worker-missing',
    },
  },
];
