import { existsSync, readdirSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { groups } from './groups.mjs';
import { scriptTests } from './lua/script-tests.js';

/** The lists name files, and `npm run mutation` is run seldom. */

const inProject = (path: string): URL => new URL(`../../../${path}`, import.meta.url);
const missing = (paths: readonly string[]): string[] => paths.filter((path) => !existsSync(inProject(path)));

it.each(Object.entries(groups))('the files of the group %s are there', (_, { mutate, tests }) => {
  expect(missing([...mutate, ...tests])).toEqual([]);
  expect(tests.length).toBeGreaterThan(0);
});

it('every script of the ledger has its tests', () => {
  const files = readdirSync(inProject('src/ledger/lua'), { recursive: true, encoding: 'utf8' });
  const scripts = files.filter((name) => name.endsWith('.lua')).map((name) => name.replace('.lua', ''));
  expect(Object.keys(scriptTests).sort()).toEqual(scripts.sort());
  expect(missing(Object.values(scriptTests).flatMap((names) => names.map((name) => `test/${name}`)))).toEqual([]);
});
