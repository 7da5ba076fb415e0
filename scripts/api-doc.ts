/** The API reference, docs/api.md, from the declarations and doc comments of everything that the package exports. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';
import { FieldLists, fieldsOf, findUnexported, firstSentence } from './api-fields.js';

const root = fileURLToPath(new URL('../', import.meta.url));

const ERRORS = 'All extend `PayoutError`; [errors.md](errors.md) has their codes and meanings.';

/** Types that applications meet as parts of others: one line each. */
const NESTED = new Set([
  'AccountConnectionOptions',
  'AccountWorker',
  'ActSignerOptions',
  'AdoptedPayout',
  'Adoption',
  'AdoptionPlan',
  'Approval',
  'ApprovalDecision',
  'DecidedPayout',
  'DelayRange',
  'EndpointName',
  'FaultKind',
  'GatewayCapabilities',
  'HealthServer',
  'IntentSignature',
  'JournalPeer',
  'KeyringFacts',
  'KeyringKey',
  'KnownJournal',
  'MissingApprovals',
  'MonitoredAccount',
  'NumberRange',
  'Objection',
  'PaymentGroup',
  'PolicyFacts',
  'RedisRole',
  'SandboxControls',
  'SentOutcome',
  'SignedApproval',
  'SshKey',
  'StatusGateway',
  'StoredReceipt',
  'StoredSignature',
  'UnreadJournal',
  'WatchedState',
  'WithdrawConnection',
]);

export interface EntryPoint {
  /** As users import it, such as `payout-queue/sandbox`. */
  readonly name: string;
  readonly exports: readonly Export[];
  /** Its names that an entry point before it explains. */
  readonly repeated: readonly string[];
}

export interface Export {
  readonly name: string;
  /** Its doc comment in Markdown; empty where there is none. */
  readonly comment: string;
  /** Its fields, or else its signature or values, in Markdown. */
  readonly body: string;
  readonly isError: boolean;
  /** The names of its public fields and methods; empty for a function, a constant or a list of words. */
  readonly fields: readonly string[];
  /** Types of ours that its signatures name and no entry point exports. */
  readonly unexported: readonly string[];
}

/** Reads what package.json exports. */
export function readApi(): EntryPoint[] {
  const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    name: string;
    exports: Record<string, string | { types: string }>;
  };
  const entries = Object.entries(manifest.exports).flatMap(([path, target]) =>
    typeof target === 'string'
      ? []
      : [{ name: manifest.name + path.slice(1), module: target.types.replace('./dist/', '').replace('.d.ts', '') }],
  );
  const sources = compileSources(entries.map(({ module }) => `${root}src/${module}.ts`));
  const checker = sources.getTypeChecker();
  const found = entries.map(({ module }) => exportsOf(sources, `${root}src/${module}.ts`));
  const names = new Set(found.flat().map((symbol) => symbol.name));
  const fields = new FieldLists(checker);
  const isRepeated = (symbol: ts.Symbol, index: number) =>
    found.slice(0, index).some((names) => names.includes(symbol));
  // A field is explained at the first type that has it, which must not be one that gets a line only.
  const inLine = (symbol: ts.Symbol): number => Number(NESTED.has(symbol.name));
  return entries.map(({ name }, index) => ({
    name,
    repeated: (found[index] ?? []).filter((symbol) => isRepeated(symbol, index)).map((symbol) => symbol.name),
    exports: (found[index] ?? [])
      .filter((symbol) => !isRepeated(symbol, index))
      .sort((a, b) => inLine(a) - inLine(b))
      .map((symbol) => ({
        name: symbol.name,
        comment: firstSentence(ts.displayPartsToString(symbol.getDocumentationComment(undefined))),
        body: fields.render(symbol),
        isError: symbol.name.endsWith('Error'),
        fields: fieldsOf(symbol, checker),
        unexported: findUnexported(symbol, checker, names),
      })),
  }));
}

/** @returns the document as prettier formats it */
export async function renderApiDoc(entries: readonly EntryPoint[]): Promise<string> {
  const parts = entries.flatMap(({ name, exports, repeated }) => {
    const errors = exports.filter((each) => each.isError);
    const nested = exports.filter((each) => NESTED.has(each.name));
    const main = exports.filter((each) => !each.isError && !NESTED.has(each.name));
    return [
      `## ${name}`,
      ...(repeated.length === 0 ? [] : [`As above: ${repeated.map((each) => `\`${each}\``).join(', ')}.`]),
      ...main.flatMap((each) => [`### ${each.name}`, ...(isEvident(each) ? [] : [each.comment]), each.body]),
      ...(errors.length === 0 ? [] : ['### Errors', ERRORS, errors.map(renderInLine).join('\n')]),
      ...(nested.length === 0 ? [] : ['### Types within these', nested.map(renderInLine).join('\n')]),
    ];
  });
  const text = [
    '<!-- Made by `npm run docs` from the doc comments in src: change them there. -->',
    '# API reference',
    'Every exported name, with its fields (`?`: optional; all are read-only). Times are ISO 8601 in UTC, or milliseconds; amounts are decimal strings. Methods without a type return nothing, or a promise of it. A field without a type is a string. Your editor shows comments whole.',
    ...parts,
  ].join('\n\n');
  const path = `${root}docs/api.md`;
  return format(text, { ...(await resolveConfig(path)), filepath: path });
}

/** What options and states are for is in their names. */
function isEvident({ name }: Export): boolean {
  return name.endsWith('Options') || name.endsWith('State');
}

/** A line for a type that is seldom named: its fields without their meaning. */
function renderInLine({ name, body }: Export): string {
  const fields = body
    .replace(/^One of:\n\n/, '')
    .split('\n')
    .filter((line) => line !== '');
  const texts = fields.map((line) =>
    line
      .replace(/^- /, '')
      .replace(/^(`[^`]*`): [^`].*$/, '$1')
      .replace(/^(as in) \[(\w+)\]\(.*?\)/, '$1 $2'),
  );
  const isVariants = body.startsWith('One of:');
  return `- **${name}**${texts.length === 0 ? '' : `: ${texts.join(isVariants ? ', or ' : ', ')}`}`;
}

function compileSources(rootNames: string[]): ts.Program {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, (path) => ts.sys.readFile(path)) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: rootNames }, ts.sys, root);
  return ts.createProgram(rootNames, {
    ...options,
    noErrorTruncation: true,
  });
}

function exportsOf(program: ts.Program, path: string): ts.Symbol[] {
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(path);
  const module = file && checker.getSymbolAtLocation(file);
  if (module === undefined) throw new Error(`${path} is not a module`);
  return checker
    .getExportsOfModule(module)
    .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol));
}
