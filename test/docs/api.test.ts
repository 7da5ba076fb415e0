import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { readApi } from '../../scripts/api-doc.js';
import { ACCOUNT_SETTINGS } from '../../src/base/account-settings.js';

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
const api = readApi().flatMap(({ exports }) => exports);

/** What the page has of an export: its section, or its line among those of types within others. */
function partOf(name: string): string {
  const [, section = ''] = page.split(`\n### ${name}\n`);
  return section === ''
    ? (new RegExp(`^- \\*\\*${name}\\*\\*.*$`, 'm').exec(page)?.[0] ?? '')
    : (section.split(/\n###? /, 1)[0] ?? '');
}

function fieldsOf(name: string): string[] {
  return [...partOf(name).matchAll(/(?:^- |: |, |or )`(\w+)\??[`:(]/gm)].map(([, field = '']) => field);
}

it('docs/api.md lists every field of every exported type', () => {
  const expected = api.filter(({ fields }) => fields.length > 0);
  expect(expected.length).toBeGreaterThan(80);
  const settings = api.find(({ name }) => name === 'AccountSettings')?.fields;
  expect(settings).toEqual(expect.arrayContaining(Object.keys(ACCOUNT_SETTINGS)));
  const missing = expected.flatMap(({ name, fields, isError }) => {
    const listed = fieldsOf(name);
    return fields
      .filter((field) => !listed.includes(field) && !(isError && name !== 'PayoutError' && field === 'code'))
      .map((field) => `${name}.${field}`);
  });
  expect(missing).toEqual([]);
});

it('docs/api.md has every exported name, with a meaning', () => {
  expect(api.length).toBeGreaterThan(120);
  for (const { name, comment } of api) {
    expect({ name, part: partOf(name) }).not.toEqual({ name, part: '' });
    expect({ name, comment }).not.toEqual({ name, comment: '' });
  }
});

it('no exported signature names a type that is not exported', () => {
  expect(
    api.filter(({ unexported }) => unexported.length > 0).map(({ name, unexported }) => ({ name, unexported })),
  ).toEqual([]);
});
