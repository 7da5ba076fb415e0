import { open } from 'node:fs/promises';
import { told, type Way } from '../way.js';

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
    told: told(
      'idle',
      ['PayoutsLogsLost'],
      [200, 'could not be written: free the disk'],
      [0, 'worker', 'could not be written: free the disk'],
      'disk',
    ),
  },
];
