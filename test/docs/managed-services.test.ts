import { expect, it } from '@jest/globals';
import { readConfig } from '../../src/base/config.js';
import { SETTINGS } from '../../src/base/settings.js';
import { read, sectionsOf } from './support/held-sentences.js';

/** The table of managed services in docs/redis.md, as far as a machine can say. */

const lines =
  sectionsOf(read('docs/redis.md'), /\n(?=#{2,3} )/).find(({ title }) => title === 'Managed services')?.lines ?? [];
const [heading = [], , ...rows] = lines
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
const services = rows.map(([service = '', keeps = '', failover = '', needs = '', ...more]) => {
  return { service, keeps, failover, needs, more };
});

it('has each known service once', () => {
  expect(heading).toEqual(['service', 'keeps writes', 'at a failover', 'needs']);
  const known = [
    ...['HAProxy', 'VIP', 'Kubernetes', 'Redis Cloud', 'Redis Software', 'Memorystore for Redis Cluster'],
    ...['Memorystore for Redis', 'MemoryDB', 'ElastiCache', 'Azure Managed Redis', 'Azure Cache for Redis'],
  ];
  for (const name of known) {
    const found = services.filter(({ service }) => new RegExp(`\\b${name}(?! Cluster)`).test(service));
    expect([name, found.length]).toEqual([name, 1]);
  }
});

it.each(services)('$service: says what it keeps and does, and what it needs follows from that', (row) => {
  const { keeps, failover, needs, more } = row;
  expect([keeps, failover, needs].every((cell) => cell !== '') && more.length === 0).toBe(true);
  // What may forget, or shows no setting that says otherwise, gets no send without this.
  if (/^no:|do not show|once a second/.test(keeps)) expect(needs).toContain('`ALLOW_VOLATILE_REDIS=true`');
  else expect(needs).not.toContain('ALLOW_VOLATILE_REDIS');
  if (/once a second|"every second"/.test(keeps + needs)) expect(needs).toContain('`WAITAOF`');
  if (failover.includes('follow the cluster')) expect(needs).toContain('`rediss-cluster://`');
});

it.each(services)('$service: names settings that there are, and URLs that are accepted', ({ needs }) => {
  const variables = Object.values(SETTINGS).map(({ variable }) => variable);
  for (const [, name = ''] of needs.matchAll(/`([A-Z]+_[A-Z_]+)(?:=\w+)?`/g)) expect(variables).toContain(name);
  for (const [, scheme = ''] of needs.matchAll(/`([a-z-]+:\/\/)`/g)) {
    const url = `${scheme}redis.example:6379`;
    expect(readConfig(['REDIS_URL'], { REDIS_URL: url }).REDIS_URL).toBe(url);
  }
});
