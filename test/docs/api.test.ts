import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { readApi } from '../../scripts/api-doc.js';
import { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS } from '../../src/base/account-settings.js';
import { WORKER_RULES } from '../../src/worker/payout-worker.js';

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
const api = readApi().flatMap(({ exports }) => exports);

/** The names of the fields that the page lists of a type. */
function fieldsOf(type: string): string[] {
  const [, section = ''] = page.split(`\n### ${type}\n`);
  const [own = ''] = section.split('\n## ', 1)[0]?.split('\n### ', 1) ?? [];
  return [...own.matchAll(/(?:^- |, |: )`(\w+)\??[:(]/gm)].map(([, name = '']) => name);
}

it.each([
  ['PayoutWorkerOptions', [...Object.keys(WORKER_RULES), 'keysFile', 'acceptUnboundUntil', 'receiptKey']],
  ['AccountOptions', [...Object.keys(ACCOUNT_IDENTITY), ...Object.keys(ACCOUNT_SETTINGS)]],
  ['AccountSettings', Object.keys(ACCOUNT_SETTINGS)],
  ['PayoutInput', ['payoutId', 'paymentId', 'amount', 'addressTo', 'symbol', 'notBefore', 'metadata', 'batch']],
  ['Payout', ['payoutId', 'amount', 'state', 'txhash', 'history', 'held']],
])('docs/api.md lists every field of %s', (type, names) => {
  expect(fieldsOf(type)).toEqual(expect.arrayContaining(names));
});

it('docs/api.md has every exported name, with a meaning', () => {
  expect(api.length).toBeGreaterThan(120);
  for (const { name, comment } of api) {
    expect(page).toContain(`\n### ${name}\n`);
    expect({ name, comment }).not.toEqual({ name, comment: '' });
  }
});

it('no exported signature names a type that is not exported', () => {
  expect(
    api.filter(({ unexported }) => unexported.length > 0).map(({ name, unexported }) => ({ name, unexported })),
  ).toEqual([]);
});

it('is at most 9,500 words', () => {
  expect(page.split(/\s+/).length).toBeLessThanOrEqual(9_500);
});
