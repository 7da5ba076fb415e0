/** What `npm run imports` forbids: one rule for each room, made from their order, and some for single files. */
import { existsSync } from 'node:fs';
import { ENTRIES, type Room, ROOMS } from './rooms.js';

export interface ImportRule {
  readonly name: string;
  readonly comment: string;
  readonly severity: 'error';
  readonly from: Files & { readonly orphan?: boolean };
  readonly to: Files & { readonly circular?: boolean; readonly dependencyTypes?: readonly string[] };
}

/** Patterns of paths from the root of the repository. */
interface Files {
  readonly path?: readonly string[];
  readonly pathNot?: readonly string[];
}

/** @throws Error if a room names one that does not stand above it, or a path that does not exist */
export function roomRules(rooms: readonly Room[] = ROOMS): readonly ImportRule[] {
  return [...rooms, ENTRIES].flatMap((room, position) => rulesOf(room, rooms.slice(0, position), rooms));
}

function rulesOf(room: Room, above: readonly Room[], rooms: readonly Room[]): readonly ImportRule[] {
  const { folder, imports, without = [], because } = room;
  const low = imports.find((path) => !above.some((each) => isIn(path, each.folder)));
  if (low !== undefined) throw new Error(`${folder} may not import ${low}: only what stands above it in the list`);
  const inner = rooms
    .filter((each) => each !== room && isIn(each.folder, folder))
    .flatMap((each) => inSrc(each.folder));
  const own = folder === '' ? ['^src/[^/]+$'] : inSrc(folder);
  const from = { path: own, ...(inner.length > 0 && { pathNot: inner }) };
  const shared = { comment: because ?? room.is, severity: 'error' as const, from };
  const name = nameOf(room);
  return [
    { ...shared, name: `${name}-imports-its-list`, to: { path: ['^src/'], pathNot: [...own, ...inSrc(...imports)] } },
    ...(without.length > 0 ? [{ ...shared, name: `${name}-loads-no-client`, to: { path: packages(...without) } }] : []),
  ];
}

function isIn(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

export function nameOf({ folder }: Room): string {
  return folder === '' ? 'entries' : folder.replace('/', '-');
}

/** @throws Error if a path does not exist: a rule about a file that was moved checks nothing */
function inSrc(...paths: readonly string[]): string[] {
  return paths.map((path) => {
    if (!existsSync(new URL(`../src/${path}`, import.meta.url))) throw new Error(`src/${path} does not exist`);
    return path.endsWith('.ts') ? `^src/${path.replaceAll('.', '\\.')}$` : `^src/${path}/`;
  });
}

function packages(...names: readonly string[]): string[] {
  return names.map((name) => `node_modules/${name}/`);
}

const PURE = inSrc('control/keys', 'control/intents', 'control/approvals', 'control/policy');
const WALLETS = inSrc('gateway/wallet.ts', 'gateway/wallet');
const PORT = inSrc('gateway/gateway.ts', 'gateway/payment-fields.ts', 'gateway/stop-sign.ts');
const ANYTHING = ['^src/', 'node_modules/'];

export const SPECIAL_RULES: readonly ImportRule[] = [
  {
    name: 'no-cycles',
    comment: 'Files that import each other in a loop cannot be understood one at a time, nor can types.',
    severity: 'error',
    from: {},
    to: { circular: true },
  },
  {
    name: 'ledger-stands-without-reads',
    comment:
      '`ledger/reads/` is a layer upon the ledger, for pages, commands and metrics: what changes payouts needs none of it.',
    severity: 'error',
    from: { path: inSrc('ledger'), pathNot: inSrc('ledger/reads') },
    to: { path: inSrc('ledger/reads') },
  },
  {
    name: 'what-is-signed-is-pure',
    comment:
      'What is signed, whether a signature counts, and what a policy decides, depends on no Redis and no gateway. wallet.ts only reads addresses.',
    severity: 'error',
    from: { path: PURE },
    to: {
      path: ANYTHING,
      pathNot: [
        ...PURE,
        ...inSrc(
          'base',
          'gateway/wallet.ts',
          'ledger/payout.ts',
          'ledger/control-record.ts',
          'journal/journal-line.ts',
        ),
        ...packages('zod', 'yaml'),
      ],
    },
  },
  {
    name: 'gateway-has-one-port',
    comment:
      'Another gateway touches nothing outside of its folder. Only the sandbox, the other side of an API, also knows its endpoints: see its room.',
    severity: 'error',
    from: { path: ['^src/'], pathNot: inSrc('gateway', 'sandbox') },
    to: {
      path: inSrc('gateway'),
      pathNot: inSrc('gateway/gateway.ts', 'gateway/wallet.ts', 'gateway/open-gateway.ts'),
    },
  },
  {
    name: 'exchange-speaks-no-dialect',
    comment: 'Bytes, the guard and the time limits are the same for every API.',
    severity: 'error',
    from: { path: inSrc('gateway/exchange') },
    to: { path: inSrc('gateway/v1', 'gateway/v2') },
  },
  {
    name: 'port-is-only-rules',
    comment:
      'The ledger imports the rules of a payment and the shapes of an outcome, so they bring no HTTP client along.',
    severity: 'error',
    from: { path: PORT },
    to: { path: ANYTHING, pathNot: [...PORT, ...inSrc('base', 'gateway/wallet.ts'), ...packages('zod')] },
  },
  {
    name: 'wallets-are-only-codecs',
    comment: 'Whatever compares addresses imports them, so they bring nothing along.',
    severity: 'error',
    from: { path: WALLETS },
    to: {
      path: ANYTHING,
      pathNot: [...WALLETS, ...inSrc('base/crc16.ts'), ...packages('@scure/base', '@noble/hashes')],
    },
  },
  {
    name: 'sender-is-what-the-simulation-runs',
    comment:
      'The sending rules run on ports, so that the simulation runs the same code: no BullMQ, no Redis client, no HTTP, no sockets, no files.',
    severity: 'error',
    from: { path: inSrc('worker/sender') },
    to: { path: ['node_modules/', '^node:', '^(net|tls|http|https|fs|child_process)$'] },
  },
  {
    name: 'format-knows-nothing',
    comment: 'How a value is written depends on the value alone.',
    severity: 'error',
    from: { path: inSrc('base/format.ts') },
    to: { path: ['.'] },
  },
  {
    name: 'no-orphans',
    comment: 'Nothing uses such a file.',
    severity: 'error',
    from: { orphan: true, pathNot: ['\\.d\\.c?ts$', '^src/dashboard/[a-z-]+\\.js$'] },
    to: {},
  },
  {
    name: 'no-dev-dependencies',
    comment: 'Users install none.',
    severity: 'error',
    from: { path: ['^src/'] },
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
  },
];
