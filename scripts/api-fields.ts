/** The fields of the exported types, and the types of ours that no entry point exports although a signature names them. */
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const SOURCES = fileURLToPath(new URL('../src/', import.meta.url));

/** The fields of exported types in Markdown. A field that an earlier type had with the same meaning is not explained again. */
export class FieldLists {
  readonly #checker: ts.TypeChecker;
  /** The first type that had a field, by the field's declaration. */
  readonly #firstOwners = new Map<ts.Declaration, string>();

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker;
  }

  /** @returns undefined if the symbol is no type with fields */
  render(symbol: ts.Symbol): string | undefined {
    if ((symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) === 0) return undefined;
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const variants = type.isUnion() ? type.types : [type];
    if (variants.every(hasFields)) {
      return variants.length === 1
        ? this.#list(symbol.name, type)
        : `One of:\n\n${variants.map((each) => `- ${this.#inline(each)}`).join('\n')}`;
    }
    const { TypeFormatFlags: flags } = ts;
    const text = this.#checker.typeToString(type, undefined, flags.InTypeAlias | flags.NoTruncation);
    return `\`\`\`ts\ntype ${symbol.name} = ${text};\n\`\`\``;
  }

  #list(owner: string, type: ts.Type): string {
    const repeated = new Map<string, string[]>();
    const lines: string[] = [];
    for (const field of publicFields(type)) {
      const declaration = field.declarations?.find(isInSource);
      const first = declaration && this.#firstOwners.get(declaration);
      if (declaration && first === undefined) this.#firstOwners.set(declaration, owner);
      const text = `\`${this.#signature(field)}\``;
      const comment = this.#comment(field);
      if (first !== undefined) repeated.set(first, [...(repeated.get(first) ?? []), text]);
      else lines.push(`- ${text}${comment === '' ? '' : `: ${comment}`}`);
    }
    for (const [first, texts] of repeated)
      lines.push(`- as in [${first}](#${first.toLowerCase()}): ${texts.join(', ')}`);
    return lines.join('\n');
  }

  #inline(type: ts.Type): string {
    const fields = publicFields(type).map((field) => {
      const comment = this.#comment(field);
      return `\`${this.#signature(field)}\`${comment === '' ? '' : ` (${comment.replace(/\.$/, '')})`}`;
    });
    return fields.join(', ');
  }

  #signature(field: ts.Symbol): string {
    const isOptional = (field.flags & ts.SymbolFlags.Optional) !== 0;
    const name = `${field.name}${isOptional ? '?' : ''}`;
    const [declaration] = field.declarations ?? [];
    if (declaration && ts.isMethodSignature(declaration)) return oneLine(declaration.getText().replace(/;$/, ''));
    if (declaration && ts.isPropertySignature(declaration) && declaration.type) {
      const text = oneLine(declaration.type.getText());
      return `${name}: ${isOptional ? text.replace(/ \| undefined$/, '').replace(/^\((.*)\)$/, '$1') : text}`;
    }
    const whole = this.#checker.getTypeOfSymbol(field);
    const given = isOptional ? this.#checker.getNonNullableType(whole) : whole;
    return `${name}: ${oneLine(this.#checker.typeToString(given, undefined, ts.TypeFormatFlags.NoTruncation))}`;
  }

  #comment(field: ts.Symbol): string {
    const about = firstSentence(ts.displayPartsToString(field.getDocumentationComment(this.#checker)));
    const tags = field
      .getJsDocTags(this.#checker)
      .map(({ name, text }) => ({ name, text: ts.displayPartsToString(text) }));
    const standard = tags.filter(({ name }) => name === 'defaultValue').map(({ text }) => `Default: ${oneLine(text)}.`);
    const errors = tags
      .filter(({ name }) => name === 'throws')
      .flatMap(({ text }) => text.match(/\b\w+Error\b/g) ?? []);
    const thrown = errors.length > 0 ? [`Throws ${[...new Set(errors)].join(', ')}.`] : [];
    return [about, ...standard, ...thrown].filter((part) => part !== '').join(' ');
  }
}

/** Names of our types that a symbol's public signatures use, and that are not among the exported names. */
export function findUnexported(symbol: ts.Symbol, checker: ts.TypeChecker, exported: ReadonlySet<string>): string[] {
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isBlock(node) || ts.isTypeQueryNode(node)) return;
    if (ts.isTypeReferenceNode(node)) {
      const named = checker.getSymbolAtLocation(node.typeName);
      const target = named && named.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(named) : named;
      if (target && isOurs(target) && !exported.has(target.name)) found.add(target.name);
    }
    ts.forEachChild(node, visit);
  };
  signaturesOf(symbol, checker).forEach(visit);
  return [...found];
}

/** The declarations of its fields and members; its own, if it has none. */
function signaturesOf(symbol: ts.Symbol, checker: ts.TypeChecker): readonly ts.Node[] {
  const { declarations = [] } = symbol;
  if (symbol.flags & ts.SymbolFlags.Class) {
    const sides = [checker.getDeclaredTypeOfSymbol(symbol), checker.getTypeOfSymbol(symbol)];
    const constructors = declarations.filter(ts.isClassDeclaration).flatMap(({ members }) => {
      const all = members.filter(ts.isConstructorDeclaration);
      return all.filter(({ body }) => all.length === 1 || body === undefined);
    });
    return [
      ...constructors.filter(isPublic),
      ...sides.flatMap(publicFields).flatMap(({ declarations: own = [] }) => own),
    ];
  }
  if ((symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) === 0) return declarations;
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  const variants = type.isUnion() ? type.types : [type];
  if (variants.every((each) => each.flags & ts.TypeFlags.Literal)) return [];
  if (!variants.every(hasFields)) return declarations;
  return variants.flatMap(publicFields).flatMap(({ declarations: own = [] }) => own);
}

function isOurs({ flags, declarations = [] }: ts.Symbol): boolean {
  const isType = (flags & ts.SymbolFlags.TypeParameter) === 0;
  return isType && declarations.some(isInSource);
}

function isInSource(declaration: ts.Declaration): boolean {
  return declaration.getSourceFile().fileName.startsWith(SOURCES);
}

function hasFields(type: ts.Type): boolean {
  const isObject = (type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) !== 0;
  return isObject && type.getCallSignatures().length === 0 && type.getProperties().length > 0 && !isForeign(type);
}

/** Whether it is a class or an interface of a library, such as a connection of ioredis. */
function isForeign({ symbol }: ts.Type): boolean {
  if (((symbol as ts.Symbol | undefined)?.flags ?? 0) & ts.SymbolFlags.TypeLiteral) return false;
  return (
    (symbol as ts.Symbol | undefined)?.declarations?.every((each) =>
      /\/node_modules\//.test(each.getSourceFile().fileName),
    ) === true
  );
}

function publicFields(type: ts.Type): ts.Symbol[] {
  return type
    .getProperties()
    .filter(({ name, declarations = [] }) => name !== 'prototype' && declarations.every(isPublic));
}

/** Whether users of the package should know a member: neither private nor protected, nor marked `@internal`. */
export function isPublic(member: ts.Declaration): boolean {
  if (ts.getCombinedModifierFlags(member) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) return false;
  const isHidden = ts.isClassElement(member) && member.name !== undefined && ts.isPrivateIdentifier(member.name);
  return !isHidden && !ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal');
}

/** The whole comment is in the declarations that the package ships, where an editor shows it. */
export function firstSentence(comment: string): string {
  const [beforeList = ''] = comment.split(/\n\s*(?:\*\s*)?-\s/, 1);
  const text = oneLine(beforeList.replace(/\{@link[\s*]+([^}\s]+)\s*\}/g, '`$1`'));
  return (/^.+?[.:?](?=\s+[A-Z`]|$)/.exec(text)?.[0] ?? text).replace(/:$/, '.');
}

/** Without line breaks, comments, `readonly`, and the separators before closing brackets. */
function oneLine(text: string): string {
  return text
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\breadonly (?!\w+\[\]|[\w<>.]+\[\])/g, '')
    .replace(/\s+/g, ' ')
    .replace(/[,;]? ([)}])/g, ' $1')
    .replace(/\( /g, '(')
    .replace(/ \)/g, ')')
    .trim();
}
