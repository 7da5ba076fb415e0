/**
 * Books every event of an account exactly once, although events are delivered at least once. A file of JSON lines stands for the
 * table of a database: its `id` is the primary key, which stays the same after a failover of Redis, and an event that already exists is skipped.
 *
 *     REDIS_URL=… GATEWAY_PLATFORM_ID=… EVENTS_FILE=./events.jsonl npx tsx examples/events.ts
 */
import { existsSync, readFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { PayoutProducer, type PayoutEvent } from 'payout-queue/producer';

const {
  REDIS_URL: redisUrl = 'redis://127.0.0.1:6379',
  GATEWAY_PLATFORM_ID: platformId = '4242',
  EVENTS_FILE: file = './events.jsonl',
} = process.env;

const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
const booked = new Set(lines.filter((line) => line !== '').map((line) => (JSON.parse(line) as PayoutEvent).id));

/**
 * What the books say of the payout from this event on. A final state can still be corrected: by a late payment, or by an
 * adoption, after which the payout is open again.
 */
function entryOf({ type, to }: PayoutEvent): string | undefined {
  if (type === 'late_payment') return 'paid late, perhaps twice: a person compares';
  if (type !== 'state') return undefined;
  if (to === 'completed') return 'paid';
  if (to === 'failed' || to === 'cancelled') return 'not paid';
  if (to === 'written_off') return 'settled by a person: ask who wrote it off';
  return 'open';
}

/** With a database: INSERT … ON CONFLICT (event_id) DO NOTHING, in one transaction with what else the event changes. */
async function book(event: PayoutEvent): Promise<void> {
  if (booked.has(event.id)) return;
  await appendFile(file, `${JSON.stringify(event)}\n`, { flush: true });
  booked.add(event.id);
  const entry = entryOf(event);
  if (entry !== undefined) process.stdout.write(`${event.payoutId ?? ''}: ${entry}\n`);
}

const stop = new AbortController();
process.once('SIGTERM', () => {
  stop.abort();
});
process.once('SIGINT', () => {
  stop.abort();
});

const producer = new PayoutProducer({ redisUrl, platformId: Number(platformId) });
// The group is the application: of its processes one at a time gets the events. An event counts as handled when the loop asks for the next.
const events = producer.events({ group: 'bookkeeping', signal: stop.signal });
for await (const event of events) await book(event);
await producer.close();
