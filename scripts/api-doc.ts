/**
 * The API reference, docs/api.md, from the declarations and doc comments of everything that the package exports. The declarations
 * are those that users get (`tsc --declaration`), so what is private does not appear.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';

const root = fileURLToPath(new URL('../', import.meta.url));
/** Where the declarations would be written; they stay in memory, at a path from where node_modules is found. */
const DECLARATIONS = `${root}.declarations/`;

export interface EntryPoint {
  /** As users import it, such as `payout-queue/sandbox`. */
  readonly name: string;
  readonly exports: readonly Export[];
}

export interface Export {
  readonly name: string;
  /** Its doc comment in Markdown; empty where there is none. */
  readonly comment: string;
  /** Its declaration with the comments of its members. */
  readonly declaration: string;
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
  const declarations = compileDeclarations(
    sources,
    entries.map(({ module }) => `${DECLARATIONS}${module}.d.ts`),
  );
  return entries.map(({ name, module }) => {
    const inSource = new Map(exportsOf(sources, `${root}src/${module}.ts`).map((symbol) => [symbol.name, symbol]));
    return {
      name,
      exports: exportsOf(declarations, `${DECLARATIONS}${module}.d.ts`).map((symbol) =>
        describe(symbol, declarations.getTypeChecker(), inSource.get(symbol.name), sources.getTypeChecker()),
      ),
    };
  });
}

/** @returns the document as prettier formats it */
export async function renderApiDoc(entries: readonly EntryPoint[]): Promise<string> {
  const contents = entries.map(
    ({ name, exports }) =>
      `**${name}**: ${exports.map((each) => `[${each.name}](#${each.name.toLowerCase()})`).join(', ')}`,
  );
  const parts = entries.flatMap(({ name, exports }) => [
    `## ${name}`,
    ...exports.flatMap((each) => [
      `### ${each.name}`,
      ...(each.comment === '' ? [] : [each.comment]),
      `\`\`\`ts\n${each.declaration}\n\`\`\``,
    ]),
  ]);
  const text = [
    '<!-- Made by `npm run docs` from the doc comments in src: change them there. -->',
    '# API reference',
    'Every exported name with its declaration. Comments are cut to their first sentence; your editor shows them whole.',
    ...contents,
    ...parts,
  ].join('\n\n');
  const path = `${root}docs/api.md`;
  return format(text, { ...(await resolveConfig(path)), filepath: path });
}

function compileSources(rootNames: string[]): ts.Program {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, (path) => ts.sys.readFile(path)) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: rootNames }, ts.sys, root);
  return ts.createProgram(rootNames, {
    ...options,
    noEmit: false,
    noCheck: true,
    noErrorTruncation: true,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: `${root}src`,
    outDir: DECLARATIONS,
  });
}

function compileDeclarations(sources: ts.Program, rootNames: string[]): ts.Program {
  const files = new Map<string, string>();
  sources.emit(undefined, (path, text) => files.set(path, text));
  const options = { ...sources.getCompilerOptions(), noEmit: true };
  const host = ts.createCompilerHost(options);
  const { sys } = ts;
  host.fileExists = (path) => files.has(path) || sys.fileExists(path);
  host.readFile = (path) => files.get(path) ?? sys.readFile(path);
  delete host.directoryExists;
  return ts.createProgram(rootNames, options, host);
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

function describe(
  symbol: ts.Symbol,
  checker: ts.TypeChecker,
  inSource: ts.Symbol | undefined,
  sourceChecker: ts.TypeChecker,
): Export {
  const [found] = symbol.declarations ?? [];
  if (found === undefined) throw new Error(`${symbol.name} has no declaration`);
  const node = ts.isVariableDeclaration(found) ? found.parent.parent : found;
  const text = shortenComments(withoutPrivate(declare(node, checker)));
  const alias = ts.isTypeAliasDeclaration(node) ? inSource : undefined;
  return {
    name: symbol.name,
    comment: firstSentence(ts.displayPartsToString(symbol.getDocumentationComment(checker))),
    declaration: alias === undefined ? text : (expandAlias(alias, text, sourceChecker) ?? text),
  };
}

/** The text of a declaration. One that extends another of the same name, which users do not get, is shown with its members. */
function declare(node: ts.Node, checker: ts.TypeChecker): string {
  const base = ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node) ? findNamesake(node, checker) : undefined;
  if (base === undefined) return node.getText();
  const { heritageClauses: [clause] = [], members } = node as typeof base;
  const own = new Set(members.map(nameOf));
  const inherited = [...base.members].filter((member) => !own.has(nameOf(member)));
  const all = [...members, ...inherited]
    .map((member) => member.getFullText())
    .filter((text) => !/^\s*protected /.test(text));
  const above = base.heritageClauses?.map((each) => ` ${each.getText()}`).join('') ?? '';
  const head = node.getText().split('{', 1)[0] ?? '';
  return `${head.replace(` ${clause?.getText() ?? ''}`, above)}{${all.join('')}\n}`;
}

function findNamesake(
  node: ts.ClassDeclaration | ts.InterfaceDeclaration,
  checker: ts.TypeChecker,
): ts.ClassDeclaration | ts.InterfaceDeclaration | undefined {
  const extended = node.heritageClauses?.[0]?.types[0];
  const found = extended && checker.getTypeAtLocation(extended).symbol.declarations?.[0];
  const isKnown = found !== undefined && (ts.isClassDeclaration(found) || ts.isInterfaceDeclaration(found));
  return isKnown && found.name?.text === node.name?.text ? found : undefined;
}

function nameOf(member: ts.ClassElement | ts.TypeElement): string {
  return member.name?.getText() ?? ts.SyntaxKind[member.kind];
}

/** A type that is derived from a schema or a constant, as what it comes to. @returns undefined where it is no such type */
function expandAlias(alias: ts.Symbol, text: string, checker: ts.TypeChecker): string | undefined {
  const type = checker.getDeclaredTypeOfSymbol(alias);
  if (/\bz\.(input|output|infer)</.test(text)) return `type ${alias.name} = {\n${renderFields(type, checker)}\n};`;
  if (!/\btypeof\b/.test(text)) return undefined;
  return `type ${alias.name} = ${checker.typeToString(type, undefined, ts.TypeFormatFlags.InTypeAlias)};`;
}

function renderFields(type: ts.Type, checker: ts.TypeChecker): string {
  const fields = type.getProperties().map((field) => {
    const comment = firstSentence(ts.displayPartsToString(field.getDocumentationComment(checker)));
    const optional = (field.flags & ts.SymbolFlags.Optional) === 0 ? '' : '?';
    const given = checker.getNonNullableType(checker.getTypeOfSymbol(field));
    const text = checker.typeToString(given);
    return `${comment === '' ? '' : `    /** ${comment} */\n`}    ${field.name}${optional}: ${text};`;
  });
  return fields.join('\n');
}

/** The whole comment is in the declarations that the package ships, where an editor shows it. */
function firstSentence(comment: string): string {
  const text = comment
    .replace(/\{@link ([^}]+)\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim();
  return /^.+?[.:?](?=\s+[A-Z`]|$)/.exec(text)?.[0] ?? text;
}

/** Each comment of a member becomes one line: its first sentence, its default, and the errors thrown. */
function shortenComments(declaration: string): string {
  return declaration.replace(/\/\*\*(.*?)\*\//gs, (_, inner: string) => {
    const [about = '', ...tags] = inner
      .replace(/\n\s*\*/g, '\n')
      .split(/(?=@(?:param|returns|throws|example|defaultValue|see)\b)/);
    const kept = tags.filter((tag) => tag.startsWith('@defaultValue')).map((tag) => tag.replace(/\s+/g, ' ').trim());
    const thrown = tags.filter((tag) => tag.startsWith('@throws')).flatMap((tag) => tag.match(/\b\w+Error\b/g) ?? []);
    const errors = thrown.length > 0 ? [`@throws ${[...new Set(thrown)].join(', ')}`] : [];
    const parts = [firstSentence(about), ...kept, ...errors].filter((part) => part !== '');
    return parts.length === 0 ? '' : `/** ${parts.join(' ')} */`;
  });
}

function withoutPrivate(declaration: string): string {
  return declaration
    .replace(/^export (declare )?/, '')
    .split('\n')
    .filter((line) => !/^\s+(#private|private .*);$/.test(line))
    .join('\n');
}
