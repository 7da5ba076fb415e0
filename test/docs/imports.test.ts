import { execFile } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findUnusedExports } from '../../scripts/find-unused-exports.js';
import { nameOf, roomRules, SPECIAL_RULES } from '../../scripts/import-rules.js';
import { ENTRIES, ROOMS } from '../../scripts/rooms.js';

/** The import rules, tried on planted files: each forbidden import is made once. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CRUISER = join(ROOT, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');

type Plant = Readonly<{ rule: string; from: string; to: string }>;
interface Report {
  readonly summary: Readonly<{ violations: readonly Readonly<{ from: string; rule: { name: string } }>[] }>;
}

const rooms = [...ROOMS, ENTRIES];
const fileIn = (folder: string, name: string) => (folder === '' ? `${name}.ts` : `${folder}/${name}.ts`);
const flat = (path: string) => path.replaceAll('/', '-').replace(/\.ts$/, '');

/** A room and each other one: a file of it that imports one of the other. */
const pairs = rooms.flatMap((room) =>
  ROOMS.filter((other) => other !== room).map((other) => ({
    room,
    other,
    rule: `${nameOf(room)}-imports-its-list`,
    from: fileIn(room.folder, `plants-${flat(other.folder)}`),
    to: fileIn(other.folder, 'target'),
  })),
);
const isAllowed = ({ room, other }: (typeof pairs)[number]) => room.imports.includes(other.folder);

const allowed: readonly Plant[] = [
  ...pairs.filter(isAllowed),
  ...rooms.flatMap((room) =>
    room.imports
      .filter((path) => path.includes('/'))
      .map((path) => ({
        rule: 'none',
        from: fileIn(room.folder, `allowed-${flat(path)}`),
        to: path.endsWith('.ts') ? path : fileIn(path, 'target'),
      })),
  ),
];
const clients: readonly Plant[] = ROOMS.flatMap((room) =>
  (room.without ?? []).map((name) => ({
    rule: `${nameOf(room)}-loads-no-client`,
    from: fileIn(room.folder, `loads-${name}`),
    to: name,
  })),
);
const special: readonly Plant[] = [
  { rule: 'no-cycles', from: 'queues/circle.ts', to: 'queues/line.ts' },
  { rule: 'ledger-stands-without-reads', from: 'ledger/shows.ts', to: 'ledger/reads/statistics.ts' },
  { rule: 'what-is-signed-is-pure', from: 'control/keys/reads-redis.ts', to: 'ledger/payout-ledger.ts' },
  { rule: 'what-is-signed-is-pure', from: 'control/intents/loads-redis.ts', to: 'ioredis' },
  { rule: 'what-is-signed-is-pure', from: 'control/approvals/asks.ts', to: 'gateway/open-gateway.ts' },
  { rule: 'gateway-has-one-port', from: 'worker/sender/reads-words.ts', to: 'gateway/stop-sign.ts' },
  { rule: 'gateway-has-one-port', from: 'worker/reads-lists.ts', to: 'gateway/parse-currencies.ts' },
  { rule: 'gateway-has-one-port', from: 'cli/opens-a-socket.ts', to: 'gateway/exchange/socket.ts' },
  { rule: 'exchange-speaks-no-dialect', from: 'gateway/exchange/signs.ts', to: 'gateway/v1/signing.ts' },
  { rule: 'exchange-speaks-no-dialect', from: 'gateway/exchange/signs-json.ts', to: 'gateway/v2/signing.ts' },
  { rule: 'what-is-signed-is-pure', from: 'control/policy/asks.ts', to: 'control/worker/spending.ts' },
  { rule: 'port-is-only-rules', from: 'gateway/payment-fields.ts', to: 'gateway/exchange/socket.ts' },
  { rule: 'port-is-only-rules', from: 'gateway/gateway.ts', to: 'axios' },
  { rule: 'wallets-are-only-codecs', from: 'gateway/wallet/throws.ts', to: 'base/errors.ts' },
  { rule: 'wallets-are-only-codecs', from: 'gateway/wallet.ts', to: 'zod' },
  { rule: 'sender-is-what-the-simulation-runs', from: 'worker/sender/reads.ts', to: 'node:fs' },
  { rule: 'sender-is-what-the-simulation-runs', from: 'worker/sender/listens.ts', to: 'node:net' },
  { rule: 'sender-is-what-the-simulation-runs', from: 'worker/sender/loads.ts', to: 'bullmq' },
  { rule: 'format-knows-nothing', from: 'base/format.ts', to: 'base/errors.ts' },
  { rule: 'no-orphans', from: 'base/alone.ts', to: '' },
  { rule: 'no-dev-dependencies', from: 'base/tests.ts', to: 'typescript' },
];
/** It closes the circle, which is reported once. */
const wayBack: Plant = { rule: 'none', from: 'queues/line.ts', to: 'queues/circle.ts' };
const forbidden: readonly Plant[] = [...pairs.filter((pair) => !isAllowed(pair)), ...clients, ...special];

const isFile = (to: string) => to.endsWith('.ts');

function write(root: string, path: string, text: string) {
  const file = join(root, 'src', path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function importOf({ from, to }: Plant) {
  if (to === '') return 'export {};\n';
  const path = isFile(to) ? relative(join('/', dirname(from)), join('/', to)).replace(/\.ts$/, '.js') : to;
  return `import '${path.startsWith('.') || !isFile(to) ? path : `./${path}`}';\n`;
}

let root: string;
let found: readonly string[];

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'imports-'));
  for (const file of ['package.json', 'tsconfig.json']) copyFileSync(join(ROOT, file), join(root, file));
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  const plants = [...forbidden, ...allowed, wayBack];
  for (const { to } of plants) if (isFile(to)) write(root, to, 'export {};\n');
  for (const plant of plants) write(root, plant.from, importOf(plant));
  const config = join(ROOT, '.dependency-cruiser.mjs');
  const args = ['--import', import.meta.resolve('tsx'), CRUISER, '--config', config, '-T', 'json', 'src'];
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, { cwd: root, maxBuffer: 1e9 }, (_, stdout) => {
      resolve(stdout);
    });
  });
  const { summary } = JSON.parse(output) as Report;
  found = summary.violations.map(({ from, rule }) => `${rule.name}: ${from.replace('src/', '')}`);
});

afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});

it('finds each import that a room may not make, whichever room it is of', () => {
  expect(forbidden.map(({ rule, from }) => `${rule}: ${from}`).filter((plant) => !found.includes(plant))).toEqual([]);
});

it('finds nothing in the imports that a room may make', () => {
  const files = new Set(allowed.map(({ from }) => from));
  expect(allowed.length).toBeGreaterThan(50);
  expect(found.filter((each) => files.has(each.split(': ')[1] ?? ''))).toEqual([]);
});

it('forbids every import of what stands below in the list of docs/architecture.md', () => {
  const text = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
  const listed = [...text.matchAll(/^- `src\/([a-z/]+)\/`: /gm)].map(([, folder = '']) => folder);
  const upward = listed.flatMap((folder, position) =>
    listed.slice(position + 1).map((below) => fileIn(folder, `plants-${flat(below)}`)),
  );
  expect(upward).toEqual(
    expect.arrayContaining(['worker/plants-http.ts', 'control/plants-dashboard.ts', 'producer/plants-operator.ts']),
  );
  expect(upward.filter((from) => !found.some((each) => each.endsWith(`: ${from}`)))).toEqual([]);
});

it('has a row for each folder of src', () => {
  const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const rows = new Set(ROOMS.map(({ folder }) => folder));
  expect(folders.map(({ name }) => name).filter((name) => !rows.has(name))).toEqual([]);
});

it('has a planted import for each of its rules', () => {
  const names = [...roomRules(), ...SPECIAL_RULES].map(({ name }) => name);
  expect(new Set(forbidden.map(({ rule }) => rule))).toEqual(new Set(names));
});

it('refuses a list whose room imports what stands below it, or a path that does not exist', () => {
  expect(() => roomRules([...ROOMS].reverse())).toThrow('only what stands above it');
  const [base, gateway] = ROOMS;
  if (base === undefined || gateway === undefined) throw new Error('the first rooms are missing');
  expect(() => roomRules([base, { ...gateway, imports: ['base/gone.ts'] }])).toThrow('src/base/gone.ts does not exist');
});

it('an exported name that no other file imports is a problem, in whichever way the others are imported', () => {
  const sources = new Map([
    ['src/index.ts', "export { one } from './a.js';\nexport const forApplications = 1;"],
    ['src/a.ts', 'export const one = 1;\nexport function two() {}\nexport interface Three {}'],
    ['src/b.ts', 'export class Planted {}\nexport const { five, six: planted } = { five: 5, six: 6 };\nfive; planted;'],
    ['src/c.ts', "import { two as second } from './a.js';\ntype T = import('./a.js').Three;"],
    ['src/d.ts', 'export const lazy = 1;\nexport const whole = 2;'],
  ]);
  const users = new Map([
    ['test/a.test.ts', "const { lazy } = await import('../src/d.js');\nimport { five } from '../src/b.js';"],
    ['test/d.test.ts', "import * as all from '../src/d.js';\nall.whole;"],
  ]);
  expect(findUnusedExports(sources, ['src/index.ts'], users)).toEqual([
    'src/b.ts exports Planted, which nothing imports',
    'src/b.ts exports planted, which nothing imports',
  ]);
  expect(findUnusedExports(sources, ['src/index.ts'])).toContain('src/d.ts exports whole, which nothing imports');
});
