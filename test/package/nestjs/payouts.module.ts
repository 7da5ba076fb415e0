import { Module, type OnModuleDestroy } from '@nestjs/common';
import { PayoutProducer } from 'payout-queue/producer';

const openProducer = () => new PayoutProducer({ redisUrl: process.env.REDIS_URL!, platformId: 4242 });

@Module({
  providers: [{ provide: PayoutProducer, useFactory: openProducer }],
  exports: [PayoutProducer],
})
export class PayoutsModule implements OnModuleDestroy {
  constructor(private readonly producer: PayoutProducer) {}

  async onModuleDestroy(): Promise<void> {
    await this.producer.close();
  }
}
