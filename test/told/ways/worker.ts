import { told, type Way } from '../way.js';

/** No process works. */
export const WORKER_WAYS: readonly Way[] = [
  {
    name: 'The worker was killed, and none stands by',
    happens: async ({ world, worker }) => {
      await worker.end();
      await world.enqueue(1);
    },
    told: told('silent', ['PayoutsWorkerMissing'], ['none', ''], [1, 'sender', 'sent no heartbeat'], 'worker-missing'),
  },
  {
    name: 'The worker hangs, and none stands by',
    happens: async ({ world, worker }) => {
      worker.kill('SIGSTOP');
      await world.enqueue(1);
    },
    told: told(
      'silent',
      ['PayoutsWorkerMissing'],
      ['none', ''],
      [1, 'sender', 'and 1 payout queued'],
      'worker-missing',
    ),
  },
];
