/**
 * Ends a worker, then a producer and the HTTP door, before and after every step of a payout's life, on a real Redis and a real gateway, and
 * checks the promises each time: `npm run crash-points [-- --jobs 6] [--only worker|producer|door]`. With `--signed`, the worker at
 * the steps that signed payouts add.
 */
import { parseArgs } from 'node:util';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { print } from '../command-line.js';
import { CRASHED_DOOR, CRASHED_PRODUCER } from './enqueuer-points.js';
import { tryPoints } from './try-points.js';
import { CRASHED_WORKER } from './worker-points.js';

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '6' },
    signed: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});

async function main(): Promise<number> {
  const { signed: isSigned, only, jobs } = values;
  // A signature changes no step of a producer or of the door.
  const programs = isSigned ? [CRASHED_WORKER] : [CRASHED_WORKER, CRASHED_PRODUCER, CRASHED_DOOR];
  const chosen = programs.filter(({ name }) => only === undefined || name === only);
  if (chosen.length === 0) throw new Error(`--only must be one of ${programs.map(({ name }) => name).join(', ')}`);
  const redis = await startLocalRedis();
  try {
    let [passed, failed] = [0, 0];
    for (const program of chosen) {
      const tried = await tryPoints(program, { redis, isSigned }, Number(jobs));
      passed += tried.passed;
      failed += tried.failed;
    }
    print(`${passed} passed, ${failed} failed`);
    return failed === 0 ? 0 : 1;
  } finally {
    await redis.stop();
  }
}

process.exitCode = await main();
