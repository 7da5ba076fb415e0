// An application that enqueues in every way that a producer has, run with crash-everywhere.mjs: ENQUEUE_PLAN is what it
// enqueues, and each payoutId that was answered is appended to ENQUEUE_ANSWERS before anything else happens.
import { appendFileSync } from 'node:fs';
import { PayoutProducer } from '../../../dist/index.js';
import { PayoutIntake } from '../../../dist/producer/payout-intake.js';
import { openLedger } from '../../../dist/queues/open-ledger.js';

const { REDIS_URL: redisUrl, GATEWAY_PLATFORM_ID, ENQUEUE_PLAN, ENQUEUE_ANSWERS } = process.env;
const platformId = Number(GATEWAY_PLATFORM_ID);
const { each, together, chunks } = JSON.parse(ENQUEUE_PLAN);

function answered(results) {
  for (const { payoutId } of results) appendFileSync(ENQUEUE_ANSWERS, `${payoutId}\n`);
}

const producer = new PayoutProducer({ redisUrl, platformId });
for (const payout of each) answered([await producer.enqueue(payout)]);
await Promise.all(together.map(async (payout) => answered([await producer.enqueue(payout)])));
await producer.close();

const account = openLedger({ redisUrl, platformId });
const intake = await PayoutIntake.open(account);
for await (const results of intake.enqueueChunks(chunks, undefined)) answered(results);
await intake.close();
await account.close();
