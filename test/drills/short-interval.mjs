// Preloaded by `node --import`: a planted mistake, a worker that keeps 200 ms between two sends.
import { createRequire } from 'node:module';

const pacer = createRequire(import.meta.url)('../../dist/worker/sender/pacer.js');
if (typeof pacer.keptIntervalMs !== 'function') throw new Error('the rule of the interval is not where it was');
pacer.keptIntervalMs = () => 200;
