import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { parse } from 'yaml';

/** Each block of code in README.md and docs/ is run by a test, or is marked with the reason why none runs it. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(ROOT + path, 'utf8');

interface Block {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly text: string;
  /** Of a comment before it: `<!-- not executed: REASON -->`. */
  readonly reason: string | undefined;
}

const BLOCK = /(?:<!-- not executed: ([^\n]*?) -->\n\n)?^ *```(\w*)[^\n]*\n(.*?)^ *```$/gms;

const pages = [
  'README.md',
  ...readdirSync(`${ROOT}docs`, { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
];
const blocksOf = (page: string, text = read(page)): Block[] =>
  [...text.matchAll(BLOCK)].map(({ 0: whole, 1: reason, 2: language = '', 3: block = '', index }) => ({
    ...{ page, language, text: block, reason },
    line: text.slice(0, index + whole.indexOf('```')).split('\n').length,
  }));
const blocks = pages.filter((page) => page.endsWith('.md')).flatMap((page) => blocksOf(page));

/** Which test runs the blocks of a page, all or those in a language. It reads them from the page. */
const RUN_BY: readonly (readonly [page: string, languages: readonly string[], test: string])[] = [
  ['README.md', ['ts', 'sh', 'text'], 'test/docs/programs.slow.test.ts'],
  ['docs/use-from-code.md', ['ts', 'js'], 'test/docs/programs.slow.test.ts'],
  ['docs/benchmarks.md', ['ts'], 'test/docs/programs.slow.test.ts'],
  ['docs/bookkeeping.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/dashboard.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/http.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/redis.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/leaving.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/own-gateway.md', ['ts'], 'test/docs/programs.slow.test.ts'],
  ['docs/http.md', ['sh', 'php', 'python'], 'test/http/clients.test.ts'],
  ['docs/notifications.md', ['json', 'ts', 'php', 'python'], 'test/notifications/notification.test.ts'],
  ['docs/states.md', ['mermaid'], 'test/ledger/transitions.test.ts'],
  ['docs/redis.md', [''], 'test/cluster/failover.slow.test.ts'],
  ['docs/redis.md', [''], 'test/deploy/support/runbook-host.ts'],
  ['docs/control.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/control.md', [''], 'test/control/statements.test.ts'],
  ['docs/deploy.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/import.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/notifications.md', ['sh'], 'test/deploy/pages.slow.test.ts'],
  ['docs/bookkeeping.md', ['sql'], 'test/cli/commands/export-command.test.ts'],
  ['docs/monitoring.md', ['sh'], 'test/docs/documents.test.ts'],
  ['docs/gateway-api-v1.md', ['http', 'json'], 'test/sandbox/endpoints.test.ts'],
  ['docs/gateway-api-v2.md', ['http', 'json', 'text'], 'test/sandbox/endpoints-v2.test.ts'],
];

const FOLLOWED = new Set(
  [...read('test/deploy/runbooks.slow.test.ts').matchAll(/\bfollow\('([\w-]+)'/g)].map(
    ([, name]) => `docs/runbooks/${name ?? ''}.md`,
  ),
);

/** What this test runs itself, or has the programs read that read such files. */
const HERE: Readonly<Record<string, (text: string) => unknown>> = {
  js: (text) => execFileSync(process.execPath, ['--input-type=module', '--eval', text]),
  json: (text) => JSON.parse(text) as unknown,
  yaml: (text) => parse(text, { strict: true }) as unknown,
};

const isRunElsewhere = ({ page, language }: Block) =>
  RUN_BY.some(([of, languages]) => of === page && languages.includes(language)) ||
  (FOLLOWED.has(page) && language === 'sh');
const isRunHere = (block: Block) => block.language in HERE && block.reason === undefined && !isRunElsewhere(block);

const nameOf = ({ page, line, language }: Block) => `${page}:${line} ${language}`;
const unexplained = (given: readonly Block[]) =>
  given.filter((block) => (block.reason ?? '').length < 9 && !isRunElsewhere(block) && !isRunHere(block)).map(nameOf);

it('each block is run by a test, or says why it is not', () => {
  expect(blocks.length).toBeGreaterThan(120);
  expect(unexplained(blocks)).toEqual([]);
  const added =
    '# A page\n\n```sh\npayouts stats\n```\n\n<!-- not executed: needs Docker -->\n\n```sh\ndocker ps\n```\n';
  expect(unexplained(blocksOf('docs/new.md', added))).toEqual(['docs/new.md:3 sh']);
});

it('invoice-77 is the same payout on every page', () => {
  const shown = blocks.filter(({ text }) => /invoice-77\b(?!-)/.test(text) && /\bamount\b/i.test(text));
  expect(new Set(shown.map(({ page }) => page)).size).toBeGreaterThan(2);
  for (const { page, line, text } of shown) {
    const amounts = [...text.matchAll(/\bamount['"]?[ =:]+['"]?(\d[\d.]*)/g)].map(([, amount]) => amount);
    const wallets = text.match(/\bT[1-9A-HJ-NP-Za-km-z]{33}\b/g) ?? [];
    const all = new Set([...amounts, ...wallets]);
    expect([
      page,
      line,
      [...all].filter((each) => each !== '12.5' && each !== 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'),
    ]).toEqual([page, line, []]);
  }
});

it('README.md says how long the demo takes: a second a payout at least', () => {
  const payouts = read('examples/payouts.csv').trim().split('\n').length - 1;
  const [, seconds] = /never lost \((\d+) s\)/.exec(read('README.md')) ?? [];
  expect(Number(seconds)).toBeGreaterThan(payouts);
});

it('each test that is named reads the page, and each page has such a block', () => {
  for (const [page, languages, test] of RUN_BY) {
    expect([test, read(test).includes(page.replace(/^docs\//, ''))]).toEqual([test, true]);
    for (const language of languages) {
      const run = blocks.filter(
        (block) => block.page === page && block.language === language && block.reason === undefined,
      );
      expect([page, language, run.length > 0]).toEqual([page, language, true]);
    }
  }
  for (const page of FOLLOWED) expect([page, blocks.some((block) => block.page === page)]).toEqual([page, true]);
  // A test runs all blocks marked `sh` of a page that it follows.
  const both = blocks.filter(
    ({ page, language, reason }) => FOLLOWED.has(page) && language === 'sh' && reason !== undefined,
  );
  expect(both.map(nameOf)).toEqual([]);
});

it.each(blocks.filter(isRunHere).map((block) => [nameOf(block), block] as const))(
  '%s is read',
  (_, { language, text }) => {
    expect(() => HERE[language]?.(text)).not.toThrow();
  },
);

it.each(
  blocks
    .filter(({ language, page }) => language === 'sh' || (language === '' && page.includes('runbooks/')))
    .map((block) => [nameOf(block), block] as const),
)('%s is what a shell reads', (_, { text }) => {
  expect(() => execFileSync('bash', ['-n'], { input: text, stdio: ['pipe', 'ignore', 'pipe'] })).not.toThrow();
});
