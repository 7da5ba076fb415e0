import { beforeEach, expect, it } from '@jest/globals';
import { GONE_AFTER_MS, MemberLives } from '../../../src/worker/sharing/account-sharing.js';

let lives: MemberLives;
let now: number;

beforeEach(() => {
  lives = new MemberLives();
  now = 0;
});

/** Looks once a second, for as long as this, at a registry that stays as it is. */
function look(listed: Readonly<Record<string, string | undefined>>, forMs = 1_000): string[] {
  for (const end = now + forMs; now < end;) {
    now += 1_000;
    lives.note(new Map(Object.entries(listed)), now);
  }
  return [...lives.alive(now).keys()];
}

it('takes one that is seen for the first time for alive, and one that stands still for gone', () => {
  expect(look({ a: '1' })).toEqual(['a']);
  expect(look({ a: '1' }, GONE_AFTER_MS - 1_000)).toEqual(['a']);
  expect(look({ a: '1' })).toEqual([]);
  expect(look({ a: '2' })).toEqual(['a']);
});

it('knows at once that one leaves', () => {
  look({ a: '1', b: '1' });
  expect(look({ a: undefined, b: '2' })).toEqual(['b']);
});

it('gives one that is not listed any more its time', () => {
  look({ a: '1' });
  expect(look({})).toEqual(['a']);
  expect(look({}, GONE_AFTER_MS)).toEqual([]);
  expect(lives.forgotten(now + 3_600_000)).toEqual([]);
});

it('concludes nothing from a time in which it did not look', () => {
  look({ a: '1' });
  now += 10_000;
  expect(look({ a: '1' })).toEqual(['a']);
  expect(look({ a: '1' }, GONE_AFTER_MS)).toEqual([]);
});

it('finds one that is gone also where every look comes late', () => {
  const lookLate = (): string[] => {
    now += 2_700;
    lives.note(new Map([['a', '1']]), now);
    return [...lives.alive(now).keys()];
  };
  expect(lookLate()).toEqual(['a']);
  expect(lookLate()).toEqual(['a']);
  expect(lookLate()).toEqual(['a']);
  expect(lookLate()).toEqual([]);
});

it('names those that ended a minute ago, also those that said so', () => {
  look({ a: '1', b: undefined });
  expect(lives.forgotten(now)).toEqual([]);
  look({ a: '1', b: undefined }, 60_000);
  expect(lives.forgotten(now).sort()).toEqual(['a', 'b']);
});
