import { expect, it } from '@jest/globals';
import { silentLogger } from '../../../src/base/logger.js';
import { publishLoaded } from '../../../src/control/worker/account-policy.js';

it('tells each policy that was loaded, in their order, once Redis is there', async () => {
  const end = new AbortController();
  const loaded = [['a'], ['b', 'a'], []];
  const told: string[] = [];
  let isDown = true;
  const clock = {
    now: () => 0,
    wallNow: () => 0,
    sleep: async () => {
      isDown = loaded.length === 2;
      if (loaded.length === 0) end.abort();
      return Promise.resolve();
    },
  };
  const tell = async (hash: string, about: string): Promise<void> => {
    if (isDown) throw new Error('Redis is down');
    told.push(`${hash} ${about}`);
    return Promise.resolve();
  };
  const policy = { file: '/etc/payouts/policy.yaml', takeLoaded: () => loaded.shift() ?? [] };
  await publishLoaded(policy, 'host:7', tell, { clock, logger: silentLogger }, end.signal);
  expect(told).toEqual(['a', 'b', 'a'].map((hash) => `${hash} policy.yaml, by host:7`));
});
