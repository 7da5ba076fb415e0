// An application that reads events as a group and writes one line for each that it has handled. Ended by a signal.
import { writeSync } from 'node:fs';
import { PayoutProducer } from '../../../dist/index.js';

const [platformId, consumer, claimAfterMs] = process.argv.slice(2);
const producer = new PayoutProducer({ platformId: Number(platformId), redisUrl: process.env.REDIS_URL });
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
const options = { group: 'books', consumer, claimAfterMs: Number(claimAfterMs), signal: stop.signal };
for await (const { eventId, payoutId, to } of producer.events(options)) {
  writeSync(1, `${eventId} ${payoutId} ${to}\n`);
}
await producer.close();
