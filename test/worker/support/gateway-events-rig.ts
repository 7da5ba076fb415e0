import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { Registry } from 'prom-client';
import { silentLogger } from '../../../src/base/logger.js';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { startEventServer } from '../../../src/worker/event-server.js';
import { until } from '../../support/until.js';
import { closeAfterTest } from './close-after-test.js';
import { openWorkerIn, type PayoutWorld, type PayoutWorldOptions, SECRET_KEY, worldOfTest } from './payout-world.js';

/** Far beyond any test: what is completed sooner was asked for because of a webhook. */
export const POLL_MS = 600_000;
export const NEVER_MS = 1e9;
export const MOST_BYTES = 16 * 1_024;

/** Shares no code with the client. */
export const sign = (platformId: number, body: string | Buffer, key = SECRET_KEY) =>
  createHmac('sha256', key)
    .update(Buffer.concat([Buffer.from(`${platformId};`), Buffer.from(body), Buffer.from(`;${key}`)]))
    .digest('hex');

export async function post(url: string, body: string, signature?: string, method = 'POST') {
  const headers = { 'content-type': 'application/json', ...(signature !== undefined && { 'x-signature': signature }) };
  const response = await fetch(url, { method, headers, ...(method === 'POST' && { body }) });
  return response.status;
}

/** A worker in this process whose payouts are in progress, and the server of its webhooks. */
export async function withPayoutsInProgress(
  count: number,
  { sandbox, accounts = 1, ...options }: PayoutWorldOptions & { readonly accounts?: number } = {},
  account: object = {},
) {
  const platformIds = Array.from(
    { length: accounts },
    (_, index) => 7_000_000 + Math.floor(Math.random() * 1e9) + index,
  );
  const world = await worldOfTest({ platformIds, sandbox: { settleAfterMs: NEVER_MS, ...sandbox }, ...options });
  const payoutIds = await world.enqueue(count);
  const slow = { api: 'v2', pollMinMs: POLL_MS, pollMaxMs: POLL_MS, ...account };
  const worker = await openWorkerIn(world, {}, slow, platformIds);
  const registry = new Registry();
  const server = closeAfterTest(
    await startEventServer({
      ...{ host: '127.0.0.1', port: 0, registry, accounts: () => worker.accounts, logger: silentLogger },
    }),
  );
  const inProgress = async () => (await world.producer.stats()).in_progress === count;
  await until('all are in progress', inProgress);
  const ids = await Promise.all(payoutIds.map(async (id) => (await world.producer.get(id))?.gatewayId ?? ''));
  await until('their polls are scheduled', async () => (await delayedScores(world, worker)).length === 2 * count);
  const results = async () => {
    const { values } = (await registry.getSingleMetric('payouts_gateway_events_total')?.get()) ?? { values: [] };
    const counted = values.filter(({ value }) => value > 0);
    return Object.fromEntries(
      counted.map(({ labels, value }) => [`${labels['platform_id']} ${labels['result']}`, value]),
    );
  };
  const polls = () => world.sandbox.stats(world.platformId).calls.transactionstatus;
  return { world, worker, url: server.url, payoutIds, gatewayIds: ids, results, polls };
}

export async function delayedScores({ platformId }: PayoutWorld, worker: Awaited<ReturnType<typeof openWorkerIn>>) {
  const account = worker.accounts.find((each) => each.platformId === platformId);
  const queue = account?.queues.transactionstatus;
  return (await account?.ledger.connection.redis.zrange(queue?.toKey('delayed') ?? '', 0, '-1', 'WITHSCORES')) ?? [];
}

/** A worker process that polls once a minute, and the sandbox's webhooks to it. */
export async function withWebhooks(
  webhooks: 'sent' | 'lost' | 'repeated' | 'forged' | 'early',
  {
    pollMs = POLL_MS,
    sandbox = {},
  }: { readonly pollMs?: number; readonly sandbox?: PayoutWorldOptions['sandbox'] } = {},
) {
  const port = await findFreePort();
  const webhookUrl = `http://127.0.0.1:${port}/gateway-events`;
  const world = await worldOfTest({ sandbox: { ...sandbox, v2: { webhookUrl, webhooks } } });
  const environment = {
    ...{ GATEWAY_API: 'v2', GATEWAY_EVENTS_PORT: String(port) },
    ...{ STATUS_POLL_MIN_MS: String(pollMs), STATUS_POLL_MAX_MS: String(pollMs) },
  };
  const worker = world.startWorker({ environment });
  await worker.said('taking the webhooks of the gateway');
  const counted = async () => {
    const { body } = await worker.get('/metrics');
    const found = body.matchAll(/^payouts_gateway_events_total\{platform_id="\d+",result="(\w+)"\} (\d+)$/gm);
    return Object.fromEntries([...found].map(([, result = '', value]) => [result, Number(value)]));
  };
  return { world, worker, counted };
}

/** Sends bytes, and ends the connection unless the server should. @returns what came back */
export async function sendPart(url: string, text: string, isEnded = true): Promise<string> {
  const { port } = new URL(url);
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(Number(port), '127.0.0.1', () =>
      socket.write(text, () => {
        if (isEnded) socket.destroySoon();
      }),
    );
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      resolve(received);
    });
  });
}
