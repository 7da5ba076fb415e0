import { expect, it } from '@jest/globals';
import { makeLuaMutants } from './lua-mutants.js';

it('each mutant has a mistake in a place of its own, and everything else as it is', () => {
  const source = ['local a = x + 1', "redis.call('SET', key('k'), a)", 'return a'].join('\n');
  expect(makeLuaMutants(source)).toEqual([
    { line: 1, mistake: '+ → -', source: source.replace('+', '-') },
    { line: 1, mistake: '1 → 2', source: source.replace('1', '2') },
    { line: 2, mistake: "redis.call('SET', key('k'), a) → (left out)", source: 'local a = x + 1\n\nreturn a' },
  ]);
});

it.each([
  ['local ok = not a and b == c or d <= e', 'not → (left out); and → or; == → ~=; or → and; <= → <; <= → >'],
  ['if a\n  ~= b\nthen\n  c = d\nend', 'a ~= b → true; a ~= b → false; ~= → =='],
  ['if a then return -1 end', 'a → true; a → false; return -1 → (left out); -1 → 0'],
  ["move(p, f(x),\n  'a)')", "move(p, f(x), 'a)') → (left out)"],
  [
    'if true then tell(b) else create(c) end',
    'true → true; true → false; tell(b) → (left out); create(c) → (left out)',
  ],
  // Its value is looked at.
  ["local a = redis.call('GET', b)", ''],
  ["-- a == 1 and not b\nlocal a = 'x or 1 < 2'", ''],
])('%j has these mistakes', (source, mistakes) => {
  expect(
    makeLuaMutants(source)
      .map(({ mistake }) => mistake)
      .join('; '),
  ).toBe(mistakes);
});
