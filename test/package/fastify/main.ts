import assert from 'node:assert/strict';
import fastify from 'fastify';
import { startLocalRedis } from 'payout-queue/local-redis';
import { addDashboard } from './dashboard.js';
import { payOne } from './pay-one.js';

async function main() {
  await payOne();

  const redis = await startLocalRedis();
  const app = fastify();
  addDashboard(app, redis.url, 'hunter2-0123456789');
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const authorization = `Basic ${btoa('payouts:hunter2-0123456789')}`;
  assert.equal((await fetch(`${url}/admin/overview`)).status, 401);
  assert.equal((await fetch(`${url}/admin/overview`, { headers: { authorization } })).status, 200);
  assert.equal((await fetch(`${url}/admin/style.css`, { headers: { authorization } })).status, 200);
  for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
    const headers = { authorization, 'content-type': type };
    const response = await fetch(`${url}/admin/approvals`, { method: 'POST', headers, body: '{}' });
    assert.match(await response.text(), /takes none: use `payouts approve`/);
  }
  await app.close();
  await redis.stop();
}

void main();
