import { existsSync, readdirSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { groups } from './groups.mjs';
import { makeLuaMutants } from './lua/lua-mutants.js';
import { INTERRUPTED, scriptTests } from './lua/script-tests.js';

const inProject = (path: string) => new URL(`../../../${path}`, import.meta.url);
const missing = (paths: readonly string[]) => paths.filter((path) => !existsSync(inProject(path)));

it.each(Object.entries(groups))('the files of the group %s are there', (_, { mutate, tests }) => {
  expect(missing([...mutate, ...tests])).toEqual([]);
  expect(tests.length).toBeGreaterThan(0);
});

it('every script of the ledger has its tests', () => {
  const files = readdirSync(inProject('src/ledger/lua'), { recursive: true, encoding: 'utf8' });
  const scripts = files.filter((name) => name.endsWith('.lua')).map((name) => name.replace('.lua', ''));
  expect(Object.keys(scriptTests).sort()).toEqual(scripts.sort());
  const tests = [INTERRUPTED, ...Object.values(scriptTests).flat()];
  expect(missing(tests.map((name) => `test/${name}`))).toEqual([]);
});

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
  ['if a then publish(b) else create(c) end', 'a → true; a → false; publish(b) → (left out); create(c) → (left out)'],
  ["-- a == 1 and not b\nlocal a = redis.call('x or 1 < 2', b)", ''],
])('%j has these mistakes', (source, mistakes) => {
  const found = makeLuaMutants(source).map(({ mistake }) => mistake);
  expect(found.join('; ')).toBe(mistakes);
});
