import { open } from 'node:fs/promises';
import type { Way } from '../way.js';

/** The log is lost. */
export const LOG_WAYS: readonly Way[] = [
  {
    name: "The log's disk is full",
    happens: async (rig) => {
      const full = await open('/dev/full', 'w');
      await rig.replaceWorker(async () => Promise.resolve(), { stderr: full.fd });
      await full.close();
      await rig.world.enqueue(5);
    },
    repeats: true,
    told: {
      headline: 'idle',
      alerts: ['PayoutsLogsLost'],
      readyz: { status: 200, words: 'could not be written: free the disk' },
      doctor: { exit: 0, check: 'worker', words: 'could not be written: free the disk' },
      runbook: 'disk',
    },
  },
];
