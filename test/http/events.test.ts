import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { EventStream } from './support/event-stream.js';
import { openDoor, payout, type DoorRig } from './support/door-rig.js';

let rig: DoorRig;
const streams: EventStream[] = [];

beforeEach(async () => {
  rig = await openDoor();
});

afterEach(async () => {
  for (const stream of streams.splice(0)) stream.close();
  await rig.close();
});

async function open(query?: string, headers?: Record<string, string>): Promise<EventStream> {
  const stream = await EventStream.open(rig, query, headers);
  streams.push(stream);
  return stream;
}

async function enqueue(...ids: readonly string[]): Promise<void> {
  for (const id of ids) expect((await rig.ask('POST', '/v1/payouts', { body: payout(id) })).status).toBe(201);
}

it('begins now, or after an id, and continues where a reader was', async () => {
  const payoutIdsOf = async (count: number, ...from: Parameters<typeof open>): Promise<string[]> => {
    const stream = await open(...from);
    await until(`${count} came`, () => stream.events.length === count);
    return stream.payoutIds;
  };
  await enqueue('before');
  const live = await open();
  await enqueue('a', 'b', 'c');
  await until('three came', () => live.events.length === 3);
  expect(live.payoutIds).toEqual(['a', 'b', 'c']);
  const [first = '', second = ''] = live.events.map(({ id }) => id);
  expect(live.events[0]?.data).toMatchObject({ eventId: first, type: 'state', to: 'queued', payoutId: 'a' });
  expect(await payoutIdsOf(2, `?after=${first}`)).toEqual(['b', 'c']);
  // The header of an EventSource that reconnects counts before its URL.
  expect(await payoutIdsOf(1, '?after=0-0', { 'last-event-id': second })).toEqual(['c']);
  expect(await payoutIdsOf(4, '?after=0-0')).toEqual(['before', 'a', 'b', 'c']);
});

it('gives a place before the first event, and has the events of the own account only', async () => {
  const first = await open();
  first.close();
  await rig.ask('POST', '/v1/payouts', { body: payout('theirs'), token: rig.tokens.other });
  await enqueue('missed');
  const second = await open('', { 'last-event-id': first.lastId });
  await until('it came', () => second.events.length === 1);
  expect(second.payoutIds).toEqual(['missed']);
});

it('has every one of many, in order, however many pages', async () => {
  const body = Array.from({ length: 1_000 }, (_, index) => payout(`m-${index}`));
  const stream = await open();
  await rig.ask('POST', '/v1/payouts', { body });
  await until('all came', () => stream.events.length === 1_000);
  expect(stream.payoutIds).toEqual(body.map((each) => (each as { payoutId: string }).payoutId));
});

it('refuses what is no place', async () => {
  for (const after of ['x', '1', '1-', '-1', '0-0%20', '99999999999999999999-0', '1-1&after=2-2']) {
    const { status, body } = await rig.ask('GET', `/v1/events?after=${after}`);
    expect({ after, status, code: body.code }).toEqual({ after, status: 400, code: 'INVALID_INPUT' });
  }
});

it('ends with its token', async () => {
  const stream = await open();
  await writeFile(rig.tokensFile, '[]');
  rig.door.reload();
  await until('it ended', () => stream.isEnded, 30_000);
});

it('ends at once when the door stops', async () => {
  const stream = await open();
  const startedAt = performance.now();
  await rig.door.close();
  await until('it ended', () => stream.isEnded);
  expect(performance.now() - startedAt).toBeLessThan(8_000);
});

it('lets a name have 20 at a time', async () => {
  for (let count = 0; count < 20; count += 1) await open();
  const refused = await rig.ask('GET', '/v1/events', { token: rig.tokens.read });
  expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  streams.shift()?.close();
  await until('one is free', async () => {
    const metrics = await (await fetch(`${rig.door.healthUrl}/metrics`)).text();
    return metrics.includes('payouts_http_streams 19');
  });
  await open();
});
