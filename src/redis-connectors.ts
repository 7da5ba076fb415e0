import { createConnection } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, SentinelConnector, type RedisOptions } from 'ioredis';
import { lookUpRedis } from './look-up.js';

/**
 * Connects to one Redis, with the process's shared look-ups. ioredis's own connector leaves a look-up behind each time
 * it gives up. If one takes longer than an attempt to connect, each waits for all before it, and none ever connects.
 */
export class NamedConnector extends AbstractConnector {
  readonly #options: RedisOptions;

  constructor(options: unknown) {
    const { disconnectTimeout = 0 } = options as RedisOptions;
    super(disconnectTimeout);
    this.#options = options as RedisOptions;
  }

  override async connect(): ReturnType<AbstractConnector['connect']> {
    this.connecting = true;
    const { host = 'localhost', port = 6379, family = 0, tls } = this.#options;
    const where = { host, port, lookup: lookUpRedis, family };
    const stream = tls === undefined ? createConnection(where) : connectTls({ ...where, ...tls });
    this.stream = stream;
    stream.once('error', (error: Error) => {
      this.firstError = error;
    });
    return Promise.resolve(stream);
  }
}

/**
 * Finds the master through Sentinel, also while a failover is announced.
 *
 * ioredis's connector listens for failovers until the next connection is made, and ends what it finds. News during its
 * next question would end the client for good.
 */
export class SteadySentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as RedisOptions);
  }

  override async connect(...args: Parameters<SentinelConnector['connect']>): ReturnType<SentinelConnector['connect']> {
    // Stops listening; the connection is already gone.
    this.disconnect();
    return super.connect(...args);
  }
}
