import { expect, it } from '@jest/globals';
import { renderOpenApi } from '../../src/http/openapi.js';
import { toEnqueuedPayout } from '../../src/producer/enqueue-results.js';
import { runInProcess } from '../cli/support/in-process.js';
import { read, readTable, titlesOf } from './support/held-sentences.js';

/** Sentences that cost money if they are false, each with its page, or the command that says it, and the tests that hold it. */

const listed = readTable('test/docs/money-sentences.txt').map(({ text, tests }) => {
  const [, page = '', sentence = ''] = /^(\S+|payouts \S+ --help): (.*)$/.exec(text) ?? [];
  return { page, sentence, tests };
});

async function readPage(page: string): Promise<string> {
  if (!page.startsWith('payouts ')) return read(page);
  return (await runInProcess(page.split(' ').slice(1), {})).stdout;
}

it.each(listed)('$page says: $sentence', async ({ page, sentence }) => {
  expect((await readPage(page)).replace(/\s+/g, ' ')).toContain(sentence);
});

it.each(listed)('the tests exist that hold: $sentence', ({ tests }) => {
  expect(tests.length).toBeGreaterThan(0);
  for (const [file, title] of tests) expect(titlesOf(file)).toContain(title);
});

it('no command has a cancellation of what was paid as its example', async () => {
  for (const command of ['cancel', 'retry', 'release', 'resolve', 'reject']) {
    const { stdout } = await runInProcess([command, '--help'], {});
    const examples = stdout.slice(stdout.indexOf('Examples:')).split('\n');
    expect(examples.length).toBeGreaterThan(1);
    expect(examples.filter((line) => /\bcancel .*\bpaid\b/.test(line))).toEqual([]);
  }
});

it('a conflict of one payoutId never has a program pay the same again under a new one', () => {
  const conflicts = [
    { kind: 'conflict', payoutId: 'p', state: 'unknown', fields: ['amount'] },
    { kind: 'removed', payoutId: 'p', state: 'completed' },
  ] as const;
  for (const found of conflicts)
    expect(() => toEnqueuedPayout(found)).toThrow(
      /new payoutId.*both are paid|never paid again.*only for another payment/,
    );
});

it('the OpenAPI document names what was paid whatever the state says', () => {
  const text = JSON.stringify(renderOpenApi());
  expect(text).toContain('`failed` and `cancelled` as not paid, unless there is a `lateGatewayId`');
  expect(text).toContain('`written_off` says nothing about payment, and what is `unknown` may be paid');
});
