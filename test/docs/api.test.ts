import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { readApi } from '../../scripts/api-doc.js';
import { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS } from '../../src/base/account-settings.js';
import { WORKER_RULES } from '../../src/worker/payout-worker.js';

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

it.each([
  ['PayoutWorkerOptions', [...Object.keys(WORKER_RULES), 'keysFile', 'acceptUnboundUntil', 'receiptKey']],
  ['AccountOptions', [...Object.keys(ACCOUNT_IDENTITY), ...Object.keys(ACCOUNT_SETTINGS)]],
  ['PayoutInput', ['payoutId', 'paymentId', 'amount', 'addressTo', 'symbol', 'notBefore', 'metadata', 'batch']],
])('docs/api.md lists every field of %s', (type, names) => {
  expect(fieldsOf(type)).toEqual(expect.arrayContaining(names));
});

it('docs/api.md lists every field of every exported type', () => {
  const expected = api.filter(({ fields }) => fields.length > 0);
  expect(expected.length).toBeGreaterThan(80);
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
