import type { LookupAddress } from 'node:dns';
import { expect, it } from '@jest/globals';
import { Names, resolveHere, SpreadResolver, type Resolve } from '../src/base/look-up.js';
import { until } from './support/until.js';

const V4 = (address: string): LookupAddress[] => [{ address, family: 4 }];

class Slow {
  readonly asked: string[] = [];
  readonly #answers = new Map<string, (addresses: LookupAddress[] | Error) => void>();

  readonly resolve: Resolve = async (host) =>
    new Promise((resolve, reject) => {
      this.asked.push(host);
      this.#answers.set(host, (answer) => {
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      });
    });

  answer(host: string, answer: LookupAddress[] | Error) {
    this.#answers.get(host)?.(answer);
  }
}

it('names are looked up once for all who wait, and kept, also while looked up again, but not for too long', async () => {
  let now = 0;
  const slow = new Slow();
  const names = new Names(slow.resolve, () => now);
  const waiting = [names.find('a'), names.find('a')];
  slow.answer('a', V4('10.0.0.1'));
  await Promise.all(waiting);
  now = 29_000;
  expect(await names.find('a')).toEqual(V4('10.0.0.1'));
  expect(slow.asked).toEqual(['a']);
  now = 31_000;
  expect(await names.find('a')).toEqual(V4('10.0.0.1'));
  expect(slow.asked).toEqual(['a', 'a']);
  slow.answer('a', V4('10.0.0.2'));
  await new Promise(setImmediate);
  expect(await names.find('a')).toEqual(V4('10.0.0.2'));

  now += 31_000;
  await names.find('a');
  slow.answer('a', new Error('no name server responds'));
  await new Promise(setImmediate);
  now += 10 * 60_000;
  const late = names.find('a');
  slow.answer('a', new Error('no name server responds'));
  await expect(late).rejects.toThrow('no name server responds');
});

it('names are looked up again once a connection failed, and by Redis almost always', async () => {
  let now = 0;
  let asked = 0;
  const find: Resolve = async () => {
    asked += 1;
    return Promise.resolve(V4('10.0.0.1'));
  };
  const names = new Names(find, () => now);
  const ofRedis = { freshMs: 5_000, keptMs: 0 };
  await names.find('a');
  names.forget('a');
  await names.find('a');
  expect(asked).toBe(2);
  now = 4_000;
  await names.find('a', ofRedis);
  expect(asked).toBe(2);
  now = 6_000;
  await names.find('a', ofRedis);
  expect(asked).toBe(3);
});

it('look-ups at the same time five that are slow do not hold up one that comes last, which a helper process looks up', async () => {
  const slow = new Slow();
  const resolver = new SpreadResolver(slow.resolve);
  const pending = resolver.resolve('one.slow');
  // Of these the helper finds that they do not exist, as fast as it can.
  const others = ['two', 'three', 'four', 'five'].map(async (name) =>
    resolver.resolve(`${name}.invalid`).catch((error: unknown) => (error as NodeJS.ErrnoException).code),
  );
  expect(await resolver.resolve('localhost')).toEqual(await resolveHere('localhost'));
  expect(slow.asked).toEqual(['one.slow']);
  for (const code of await Promise.all(others)) expect(['ENOTFOUND', 'EAI_AGAIN']).toContain(code);
  slow.answer('one.slow', V4('10.0.0.1'));
  expect(await pending).toEqual(V4('10.0.0.1'));
});

it.each([
  ['ends at once', 'process.exit(1)'],
  ['ends when it is asked', "process.on('message', () => process.exit(1))"],
])(
  'look-ups at the same time a helper that %s costs nothing: the process looks the name up itself',
  async (_, program) => {
    const slow = new Slow();
    const resolver = new SpreadResolver(slow.resolve, program);
    const first = resolver.resolve('one.slow');
    const second = resolver.resolve('two.slow');
    await until('it asks itself', () => slow.asked.length === 2);
    slow.answer('two.slow', V4('10.0.0.2'));
    expect(await second).toEqual(V4('10.0.0.2'));
    slow.answer('one.slow', V4('10.0.0.1'));
    expect(await first).toEqual(V4('10.0.0.1'));
  },
);
