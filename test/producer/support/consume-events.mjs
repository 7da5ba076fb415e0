// An application that reads events as a group, and writes one line for each that it has handled.
import { writeSync } from 'node:fs';
import { PayoutProducer } from '../../../dist/index.js';

const [platformId, consumer] = process.argv.slice(2);
const producer = new PayoutProducer({ platformId: Number(platformId), redisUrl: process.env.REDIS_URL });
for await (const { eventId, payoutId, to } of producer.events({ group: 'books', consumer, claimAfterMs: 1_000 })) {
  writeSync(1, `${eventId} ${payoutId} ${to}\n`);
}
