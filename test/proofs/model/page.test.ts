import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { MODELS, readModel, switchesOf, withCoveredRules } from './checker.js';
import { REASONS } from './page.js';

const PAGE = 'docs/model.md';

// The searches themselves take minutes: `npm run model -- --page --check`, by night.
it('docs/model.md has a row for each rule and assumption of the models, with its meaning, and no other', async () => {
  const page = await readFile(PAGE, 'utf8');
  const rows = [...page.matchAll(/^- \*\*(\w+):\*\* (.+?)\. _/gm)].map(([, name, meaning]) => `${name}: ${meaning}`);
  const switches = await Promise.all(MODELS.map(async (model) => switchesOf(await readModel(model))));
  expect(rows.sort()).toEqual(
    switches
      .flat()
      .map(({ name, meaning }) => `${name}: ${meaning}`)
      .sort(),
  );
});

it('docs/model.md gives a reason exactly if nothing was found', async () => {
  const page = await readFile(PAGE, 'utf8');
  const rows = page.matchAll(/^- \*\*(\w+):\*\* .*_None found:_ for (.+)\.$/gm);
  expect(Object.fromEntries([...rows].map(([, name = '', reason]) => [name, reason]))).toEqual(REASONS);
});

it('docs/model.md has at most 1,200 words', async () => {
  const page = await readFile(PAGE, 'utf8');
  expect(page.split(/\s+/).length).toBeLessThanOrEqual(1_200);
});

it.each(MODELS)('the model %s has the form in which each of its rules is counted', async (name) => {
  expect(withCoveredRules(await readModel(name), /^$/)).toMatch(/cover "worker \{w\} takes the lease" fired = \d;/);
});
