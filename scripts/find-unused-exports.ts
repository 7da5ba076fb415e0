import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';

/** Paths from the root of the repository, with their texts. */
export type Sources = ReadonlyMap<string, string>;

/**
 * @param entries - files whose exports are for applications
 * @param users - other files that may import, such as tests
 * @returns a problem for each name that a file exports and no other file imports
 */
export function findUnusedExports(sources: Sources, entries: readonly string[], users: Sources = new Map()): string[] {
  const used = new Set([...sources, ...users].flatMap(([path, text]) => importsOf(path, text)));
  return [...sources]
    .filter(([path]) => !entries.includes(path))
    .flatMap(([path, text]) =>
      exportsOf(path, text)
        .filter((name) => !used.has(`${path} ${name}`))
        .map((name) => `${path} exports ${name}, which nothing imports`),
    );
}

/** Each as `path name`. */
function importsOf(from: string, text: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const [specifier, names] = readImport(node);
    if (specifier?.startsWith('.')) {
      // Preloads of the proofs change what was built.
      const path = normalize(join(dirname(from), specifier))
        .replace(/^dist\//, 'src/')
        .replace(/\.js$/, '.ts');
      found.push(...names.map((name) => `${path} ${name}`));
    }
    ts.forEachChild(node, visit);
  };
  visit(parse(from, text));
  return found;
}

function readImport(node: ts.Node): [specifier: string | undefined, names: readonly string[]] {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
    const list = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : node.exportClause;
    if (list === undefined) return [undefined, []];
    const names =
      'elements' in list ? list.elements.map((each) => (each.propertyName ?? each.name).text) : wordsOf(node);
    return [node.moduleSpecifier && textOf(node.moduleSpecifier), names];
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return [textOf(node.argument.literal), node.qualifier ? [node.qualifier.getText()] : []];
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword && node.arguments[0]) {
    return [textOf(node.arguments[0]), wordsOf(node)];
  }
  return [undefined, []];
}

/** Of its whole file: which names it takes from a module that it has as one value cannot be seen at the import. */
function wordsOf(node: ts.Node): readonly string[] {
  return node.getSourceFile().text.match(/\w+/g) ?? [];
}

function exportsOf(path: string, text: string): string[] {
  return parse(path, text).statements.flatMap((statement) => {
    const isExported = ts.canHaveModifiers(statement)
      ? ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
      : false;
    if (!isExported) return [];
    const declarations = ts.isVariableStatement(statement) ? statement.declarationList.declarations : [statement];
    return declarations.flatMap((each) => namesOf((each as ts.NamedDeclaration).name));
  });
}

function namesOf(name: ts.Node | undefined): string[] {
  if (name === undefined) return [];
  if (ts.isIdentifier(name)) return [name.text];
  return ts.isObjectBindingPattern(name) ? name.elements.flatMap((each) => namesOf(each.name)) : [];
}

function textOf(node: ts.Node): string | undefined {
  return ts.isStringLiteral(node) ? node.text : undefined;
}

function parse(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}
