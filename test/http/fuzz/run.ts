/** Sends requests made from the OpenAPI document to a door, and looks for a 5xx: `npm run fuzz:http [-- --requests 100000 --seed 1]`. */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { print } from '../../proofs/command-line.js';
import { openDoor } from '../support/door-rig.js';
import { fuzzDoor } from './fuzz-door.js';

const { values } = parseArgs({ options: { requests: { type: 'string' }, seed: { type: 'string' } } });
const made = { requests: Number(values.requests ?? 100_000), seed: Number(values.seed ?? randomInt(2 ** 31)) };
const redis = await startLocalRedis();
process.env['REDIS_URL'] = redis.url;
const rig = await openDoor();
try {
  print(`seed ${made.seed}`);
  const { statuses, wrong, accepted } = await fuzzDoor(rig.door.url, Object.values(rig.tokens), made);
  for (const each of wrong.slice(0, 20)) print(each);
  for (const [status, count] of [...statuses].sort()) print(`${status}: ${count}`);
  print(`${accepted.size} payouts accepted; ${wrong.length} wrong responses`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
} finally {
  await rig.close();
  await redis.stop();
}
