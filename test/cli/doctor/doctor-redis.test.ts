import { describe, expect, it } from '@jest/globals';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { NO_SENDER, problemOf, useDoctor } from '../support/doctor-rig.js';
import { untilReply } from '../../support/redis-cluster.js';

const doctor = useDoctor();

describe('payouts doctor finds, in Redis:', () => {
  it('a Redis without persistence', async () => {
    await doctor.client.config('SET', 'appendonly', 'no');
    try {
      const { code, found } = await doctor.findings();
      expect([code, found]).toEqual([1, [problemOf('Redis keeps its data', 'appendonly is off'), NO_SENDER]]);
      const accepted = await doctor.findings({ ALLOW_VOLATILE_REDIS: 'true' });
      expect(accepted.code).toBe(0);
      expect(accepted.found[0]).toMatchObject({ name: 'Redis keeps its data', status: 'warning' });
    } finally {
      await doctor.client.config('SET', 'appendonly', 'yes');
      // Until its first file is complete, a restart would forget what is in it, and doctor says so.
      await untilReply(doctor.client, 'INFO persistence', /aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/);
    }
  });

  it('a Redis that skips fsync during a save', async () => {
    await doctor.client.config('SET', 'no-appendfsync-on-rewrite', 'yes');
    const { code, found } = await doctor.findings();
    await doctor.client.config('SET', 'no-appendfsync-on-rewrite', 'no');
    expect([code, found]).toEqual([
      1,
      [problemOf('Redis keeps its data', 'no-appendfsync-on-rewrite is on'), NO_SENDER],
    ]);
  });

  it('a Redis that keeps records with a long txhash at twice the memory', async () => {
    await doctor.client.config('SET', 'hash-max-ziplist-value', '127');
    const { code, found } = await doctor.findings();
    await doctor.client.config('SET', 'hash-max-ziplist-value', '128');
    expect(code).toBe(0);
    expect(found).toMatchObject([{ name: 'Redis memory', status: 'warning' }, { name: 'sender' }]);
  });

  it('missing replicas, and an invalid number of them', async () => {
    const { code, found } = await doctor.findings({ REDIS_REPLICAS: '2' });
    expect([code, found]).toEqual([
      1,
      [problemOf('Redis replicas', 'only 0 of 2 acknowledge writes, so nothing is sent'), NO_SENDER],
    ]);
    expect(found[0]?.fix).toContain('"Replicas" in docs/redis.md');
    expect(await doctor.findings({ ALLOW_VOLATILE_REDIS: 'true' })).toMatchObject({
      code: 0,
      found: [{ name: 'Redis replicas', status: 'warning' }, NO_SENDER],
    });
    Object.assign(doctor.environment, { REDIS_REPLICAS: 'two' });
    expect(await doctor.run('--json')).toMatchObject({ code: 2, err: expect.stringContaining('REDIS_REPLICAS') });
  });

  it('a Redis that evicts', async () => {
    await doctor.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const { code, found } = await doctor.findings();
    await doctor.client.config('SET', 'maxmemory-policy', 'noeviction');
    expect([code, found]).toEqual([1, [problemOf('Redis keeps its data', 'allkeys-lru'), NO_SENDER]]);
  });

  it('an unavailable Redis, and still runs the other checks', async () => {
    const { code, found } = await doctor.findings({
      REDIS_URL: `redis://:hidden-word@127.0.0.1:${await findFreePort()}`,
    });
    expect([code, found]).toEqual([1, [problemOf('Redis', 'ECONNREFUSED')]]);
    expect(JSON.stringify(found)).not.toContain('hidden-word');
  });

  it('a wrong Redis password', async () => {
    await doctor.client.config('SET', 'requirepass', 'right-word');
    const { code, found } = await doctor.findings({ REDIS_URL: doctor.redis.url.replace('//', '//:wrong-word@') });
    await doctor.client.config('SET', 'requirepass', '');
    expect([code, found]).toEqual([1, [problemOf('Redis', 'WRONGPASS')]]);
    expect(JSON.stringify(found)).not.toContain('wrong-word');
  });

  it('a missing Redis password, and TLS with a port that speaks none', async () => {
    await doctor.client.config('SET', 'requirepass', 'right-word');
    const missing = await doctor.findings();
    await doctor.client.config('SET', 'requirepass', '');
    expect(missing.found).toEqual([problemOf('Redis', 'it asks for a password, and there is none in the address')]);
    const { found } = await doctor.findings({ REDIS_URL: doctor.redis.url.replace('redis:', 'rediss:') });
    expect(found).toEqual([problemOf('Redis', 'the port is open, but does not speak TLS')]);
  });
});
