import { SentinelConnector, type RedisOptions } from 'ioredis';

/**
 * Finds the master through Sentinel, also while a failover is announced.
 *
 * The connector of ioredis listens for failovers until the next connection stands, and ends what it finds: news that comes
 * while it asks for the master again would end the client for good, without another attempt.
 */
export class SteadySentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as RedisOptions);
  }

  override async connect(...args: Parameters<SentinelConnector['connect']>): ReturnType<SentinelConnector['connect']> {
    // Stops listening; the connection itself is gone already.
    this.disconnect();
    return super.connect(...args);
  }
}
