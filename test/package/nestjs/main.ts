import 'reflect-metadata';
import assert from 'node:assert/strict';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PayoutProducer } from 'payout-queue';
import { createDashboard } from 'payout-queue/dashboard';
import { startLocalRedis } from 'payout-queue/local-redis';
import { payOne } from './pay-one';
import { PayoutsModule } from './payouts.module';

@Injectable()
class Invoices {
  // Nest finds what to inject by the class.
  constructor(private readonly producer: PayoutProducer) {}

  async settle(payoutId: string): Promise<string> {
    const addressTo = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
    return (await this.producer.enqueue({ payoutId, paymentId: 6, amount: '3', addressTo })).payoutId;
  }
}

async function main() {
  await payOne();

  const redis = await startLocalRedis();
  const account = { redisUrl: redis.url, platformId: 4242 };
  process.env['REDIS_URL'] = redis.url;
  class Application {}
  Module({ imports: [PayoutsModule], providers: [Invoices] })(Application);

  const dashboard = createDashboard({ ...account, allowUnprotected: true });
  const app = await NestFactory.create(Application, { logger: ['error'] });
  app.use('/admin', dashboard.router);
  await app.listen(0, '127.0.0.1');
  assert.equal(await app.get(Invoices).settle('invoice-1'), 'invoice-1');
  assert.equal((await fetch(`${await app.getUrl()}/admin/payouts/invoice-1`)).status, 200);
  const producer = app.get(PayoutProducer);
  await app.close();
  await assert.rejects(producer.get('invoice-1'), { code: 'CLOSED' });
  await dashboard.close();
  await redis.stop();
}

void main();
