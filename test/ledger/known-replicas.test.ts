import { describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { InvalidConfigError } from '../../src/base/errors.js';
import { KnownReplicas, parseReplication } from '../../src/ledger/redis-durability.js';

const single = new Redis({ lazyConnect: true });
const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
const watched = new Redis({ lazyConnect: true, sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'm' });

const seen = (online: number, replicationId = 'first') => ({ role: 'master', replicationId, online });

describe('what a server says of its replicas', () => {
  it('is read from INFO', () => {
    expect(
      parseReplication({
        role: 'master',
        connected_slaves: '3',
        slave0: 'ip=10.0.0.2,port=6379,state=online,offset=14,lag=0',
        slave1: 'ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0',
        slave2: 'ip=10.0.0.4,port=6379,state=online,offset=14,lag=1',
        master_replid: 'abc',
      }),
    ).toEqual({ role: 'master', replicationId: 'abc', online: 2 });
  });

  it('counts a replica once that is still listed with an earlier connection', () => {
    const info = {
      slave0: 'ip=10.0.0.2,port=6379,state=online,offset=1,lag=55',
      slave1: 'ip=10.0.0.2,port=6379,state=online,offset=14,lag=0',
      slave2: 'ip=10.0.0.2,port=6380,state=online,offset=14,lag=0',
    };
    expect(parseReplication(info).online).toBe(2);
  });

  it('may be nothing', () => {
    expect(parseReplication()).toEqual({ role: undefined, replicationId: '', online: 0 });
  });
});

describe('how many replicas are needed', () => {
  it('is none where none was ever seen', () => {
    expect(new KnownReplicas(single).required(seen(0))).toBe(0);
  });

  it.each([
    ['one server', single],
    ['a cluster', cluster],
    ['Sentinel', watched],
  ])('is the highest number that was seen, also after they are gone: %s', (_, redis) => {
    const known = new KnownReplicas(redis);
    for (const online of [1, 2, 0]) known.note(seen(online));
    expect(known.required(seen(0))).toBe(2);
  });

  it('is counted again after a failover, where there is one', () => {
    for (const redis of [cluster, watched]) {
      const known = new KnownReplicas(redis);
      known.note(seen(2));
      known.note(seen(1, 'second'));
      expect(known.required(seen(1, 'second'))).toBe(1);
      expect(known.required(seen(2))).toBe(2);
    }
  });

  it('stays what it was behind one address, since what is there now may be a master that was cut off and restarted', () => {
    const known = new KnownReplicas(single);
    known.note(seen(2));
    known.note(seen(0, 'second'));
    expect(known.required(seen(0, 'second'))).toBe(2);
  });

  it('is one at least with Sentinel', () => {
    expect(new KnownReplicas(watched).required(seen(0))).toBe(1);
  });

  it('is what the operator says, whatever was seen', () => {
    for (const fixed of [1, 3]) {
      const known = new KnownReplicas(watched, fixed);
      known.note(seen(2));
      expect(known.required(seen(2))).toBe(fixed);
    }
    expect(new KnownReplicas(single, 0).required(seen(2))).toBe(0);
  });

  it('cannot be none with Sentinel, nor a part of one', () => {
    expect(() => new KnownReplicas(watched, 0)).toThrow(InvalidConfigError);
    expect(() => new KnownReplicas(watched, 0)).toThrow(
      'REDIS_REPLICAS: must be a whole number of at least 1, because Sentinel fails over to a replica (got 0)',
    );
    expect(() => new KnownReplicas(single, 1.5)).toThrow(
      'REDIS_REPLICAS: must be a whole number of at least 0 (got 1.5)',
    );
  });
});
