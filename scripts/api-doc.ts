/**
 * The API reference, docs/api.md, from the declarations and doc comments of everything that the package exports. The declarations
 * are those that users get (`tsc --declaration`), so what is private does not appear.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';
import { FieldLists, findUnexported, firstSentence, isPublic } from './api-fields.js';

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
  /** Its fields, or else its declaration, in Markdown. */
  readonly body: string;
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
  const declarations = compileDeclarations(
    sources,
    entries.map(({ module }) => `${DECLARATIONS}${module}.d.ts`),
  );
  const checker = sources.getTypeChecker();
  const found = entries.map(({ module }) => exportsOf(sources, `${root}src/${module}.ts`));
  const names = new Set(found.flat().map((symbol) => symbol.name));
  const fields = new FieldLists(checker);
  return entries.map(({ name, module }, index) => {
    const inSource = new Map(found[index]?.map((symbol) => [symbol.name, symbol]));
    return {
      name,
      exports: exportsOf(declarations, `${DECLARATIONS}${module}.d.ts`).map((declared) => {
        const symbol = inSource.get(declared.name);
        if (symbol === undefined) throw new Error(`${declared.name} is not in the source of ${name}`);
        return {
          name: symbol.name,
          comment: firstSentence(ts.displayPartsToString(declared.getDocumentationComment(undefined))),
          body: fields.render(symbol) ?? renderDeclaration(declared, declarations.getTypeChecker()),
          unexported: findUnexported(symbol, checker, names),
        };
      }),
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
    ...exports.flatMap((each) => [`### ${each.name}`, ...(each.comment === '' ? [] : [each.comment]), each.body]),
  ]);
  const text = [
    '<!-- Made by `npm run docs` from the doc comments in src: change them there. -->',
    '# API reference',
    'Every exported name. A type has its fields, one a line (`?`: optional; all are read-only); anything else its declaration. Comments are cut to their first sentence; your editor shows them whole.',
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

function renderDeclaration(symbol: ts.Symbol, checker: ts.TypeChecker): string {
  const [found] = symbol.declarations ?? [];
  if (found === undefined) throw new Error(`${symbol.name} has no declaration`);
  const node = ts.isVariableDeclaration(found) ? found.parent.parent : found;
  return `\`\`\`ts\n${shortenComments(withoutPrivate(declare(node, checker)))}\n\`\`\``;
}

/** The text of a declaration. A class that extends one of the same name, which users do not get, is shown with its members. */
function declare(node: ts.Node, checker: ts.TypeChecker): string {
  if (!ts.isClassDeclaration(node)) return node.getText();
  const base = findNamesake(node, checker);
  const { heritageClauses: [clause] = [], members } = node;
  const own = new Set(members.map(nameOf));
  const inherited = [...(base?.members ?? [])].filter((member) => !own.has(nameOf(member)));
  const all = [...members, ...inherited].filter(isPublic).map((member) => member.getFullText());
  const head = node.getText().split('{', 1)[0] ?? '';
  const above = base?.heritageClauses?.map((each) => ` ${each.getText()}`).join('') ?? '';
  return `${base ? head.replace(` ${clause?.getText() ?? ''}`, above) : head}{${all.join('')}\n}`;
}

function findNamesake(node: ts.ClassDeclaration, checker: ts.TypeChecker): ts.ClassDeclaration | undefined {
  const extended = node.heritageClauses?.[0]?.types[0];
  const found = extended && checker.getTypeAtLocation(extended).symbol.declarations?.[0];
  return found && ts.isClassDeclaration(found) && found.name?.text === node.name?.text ? found : undefined;
}

function nameOf(member: ts.ClassElement): string {
  return member.name?.getText() ?? ts.SyntaxKind[member.kind];
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
