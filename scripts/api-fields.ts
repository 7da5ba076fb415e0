/** The fields of the exported types, and the types of ours that no entry point exports although a signature names them. */
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const SOURCES = fileURLToPath(new URL('../src/', import.meta.url));

/** A longer first sentence is cut to its first clause. */
const MOST_WORDS = 9;

/** The files whose rows docs/configuration.md describes. */
const SETTINGS = /\/src\/base\/(?:account-)?settings\.ts$/;

const { TypeFormatFlags: Flags } = ts;

/** What an export looks like to its users, in Markdown. A field is explained once, at the first type that has it. */
export class FieldLists {
  readonly #checker: ts.TypeChecker;
  /** The first type that had a field, by the field's declaration. */
  readonly #firstOwners = new Map<ts.Declaration, string>();

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker;
  }

  render(symbol: ts.Symbol): string {
    if (symbol.flags & ts.SymbolFlags.Class) return this.#class(symbol);
    if ((symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) === 0) return this.#value(symbol);
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const variants = type.isUnion() ? type.types : [type];
    if (variants.every(hasFields)) {
      return variants.length === 1
        ? this.#list(symbol.name, publicFields(type))
        : `One of:\n\n${variants.map((each) => `- ${this.#inline(publicFields(each))}`).join('\n')}`;
    }
    if (variants.every((each) => each.isStringLiteral()))
      return `One of ${variants.map((each) => `\`'${each.value}'\``).join(', ')}.`;
    return `\`${this.#checker.typeToString(type, undefined, Flags.InTypeAlias | Flags.NoTruncation)}\``;
  }

  #class(symbol: ts.Symbol): string {
    const type = this.#checker.getTypeOfSymbol(symbol);
    const instance = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const members = [...publicFields(type), ...publicFields(instance)].filter(
      ({ name, declarations = [] }) =>
        declarations.every(isInSource) && !(isError(instance) && name === 'code' && symbol.name !== 'PayoutError'),
    );
    const [made] = type.getConstructSignatures();
    const isHidden = isError(instance) || made?.declaration === undefined || !isPublic(made.declaration);
    const start = isHidden ? [] : [`- \`new ${symbol.name}(${this.#parameters(made)})\``];
    return [...start, this.#list(symbol.name, members)].filter((line) => line !== '').join('\n');
  }

  /** A function, or a constant: of one with texts of its own, their names. */
  #value(symbol: ts.Symbol): string {
    const type = this.#checker.getTypeOfSymbol(symbol);
    const [call] = type.getCallSignatures();
    if (call) return `\`${symbol.name}${this.#call(call)}\``;
    const texts = publicFields(type).map((field) => [field.name, this.#checker.getTypeOfSymbol(field)] as const);
    if (texts.length > 0 && texts.every(([, each]) => each.isStringLiteral()))
      return `A text for each of ${texts.map(([name]) => `\`${name}\``).join(', ')}.`;
    const [declaration] = symbol.declarations ?? [];
    const written = declaration && ts.isVariableDeclaration(declaration) ? declaration.type?.getText() : undefined;
    return `\`${symbol.name}: ${oneLine(written ?? this.#checker.typeToString(type))}\``;
  }

  #list(owner: string, fields: readonly ts.Symbol[]): string {
    const elsewhere = new Map<string, string[]>();
    const lines: string[] = [];
    const evident: string[] = [];
    for (const field of fields) {
      const declaration = field.declarations?.find(isInSource);
      const first = declaration && this.#firstOwners.get(declaration);
      const isSetting = declaration !== undefined && SETTINGS.test(declaration.getSourceFile().fileName);
      const home = isSetting
        ? 'described in [configuration.md](configuration.md)'
        : first && `as in [${first}](#${first.toLowerCase()})`;
      const comment = this.#comment(field);
      if (declaration && first === undefined) this.#firstOwners.set(declaration, owner);
      if (home) elsewhere.set(home, [...(elsewhere.get(home) ?? []), `\`${nameOf(field)}\``]);
      else if (comment === '') evident.push(`\`${this.#signature(field)}\``);
      else lines.push(`- \`${this.#signature(field)}\`: ${comment}`);
    }
    if (evident.length > 0) lines.push(`- ${evident.join(', ')}`);
    for (const [home, names] of elsewhere) lines.push(`- ${home}: ${names.join(', ')}`);
    return lines.join('\n');
  }

  #inline(fields: readonly ts.Symbol[]): string {
    return fields.map((field) => `\`${this.#signature(field)}\``).join(', ');
  }

  #signature(field: ts.Symbol): string {
    const [declaration] = field.declarations ?? [];
    const [call] = this.#checker.getTypeOfSymbol(field).getCallSignatures();
    if (call && declaration && (ts.isMethodSignature(declaration) || ts.isMethodDeclaration(declaration)))
      return `${field.name}${this.#call(call)}`;
    const type = this.#fieldType(field);
    return type === 'string' ? nameOf(field) : `${nameOf(field)}: ${type}`;
  }

  #fieldType(field: ts.Symbol): string {
    const isOptional = (field.flags & ts.SymbolFlags.Optional) !== 0;
    const [declaration] = field.declarations ?? [];
    if (declaration && ts.isPropertySignature(declaration) && declaration.type) {
      const text = oneLine(declaration.type.getText());
      return isOptional ? text.replace(/ \| undefined$/, '').replace(/^\((.*)\)$/, '$1') : text;
    }
    if (declaration && ts.isGetAccessor(declaration) && declaration.type) return oneLine(declaration.type.getText());
    const whole = this.#checker.getTypeOfSymbol(field);
    const given = isOptional ? this.#checker.getNonNullableType(whole) : whole;
    return oneLine(this.#checker.typeToString(given, undefined, Flags.NoTruncation));
  }

  /** Names and types of the parameters, and what is returned unless it is nothing. */
  #call(signature: ts.Signature): string {
    const written = (signature.declaration as ts.SignatureDeclaration | undefined)?.type?.getText();
    const returned = oneLine(
      written ?? this.#checker.typeToString(signature.getReturnType(), undefined, Flags.NoTruncation),
    );
    return `(${this.#parameters(signature)})${/^(Promise<)?void>?$/.test(returned) ? '' : `: ${returned}`}`;
  }

  #parameters({ parameters }: ts.Signature): string {
    return parameters
      .map(({ valueDeclaration: declaration }) => {
        if (declaration === undefined || !ts.isParameter(declaration)) return '';
        const isOptional = declaration.questionToken !== undefined || declaration.initializer !== undefined;
        const name = ts.isIdentifier(declaration.name) ? declaration.name.text : 'options';
        const text = oneLine(declaration.type?.getText() ?? 'string').replaceAll(/\?: ([^;]+?) \| undefined/g, '?: $1');
        return `${name}${isOptional ? '?' : ''}: ${text.replace(/;(?= \})/, '')}`;
      })
      .join(', ');
  }

  /** Its first clause, its default in a few words unless it is none, and the errors that it throws. */
  #comment(field: ts.Symbol): string {
    const about = firstClause(ts.displayPartsToString(field.getDocumentationComment(this.#checker)));
    const tags = field
      .getJsDocTags(this.#checker)
      .map(({ name, text }) => ({ name, text: ts.displayPartsToString(text) }));
    const standard = tags
      .filter(({ name, text }) => name === 'defaultValue' && !/^(?:none\b|no |nothing|a silent|the machine)/.test(text))
      .map(({ text }) => `Default: ${oneLine(text).split(/[:,] /, 1).join('')}.`);
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

/** The names of what an exported class or type has: of a union, in each of its variants. */
export function fieldsOf(symbol: ts.Symbol, checker: ts.TypeChecker): string[] {
  const { Class, Interface, TypeAlias } = ts.SymbolFlags;
  if ((symbol.flags & (Class | Interface | TypeAlias)) === 0) return [];
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  const own = (type.isUnion() ? type.types : [type]).filter(hasFields).flatMap(publicFields);
  const ours = own.filter(({ declarations = [] }) => !declarations.every(isOfLanguage));
  return [...new Set(ours.map(({ name }) => name))];
}

/** Such as the `stack` of an error. */
function isOfLanguage(declaration: ts.Declaration): boolean {
  return /\/node_modules\/(?:typescript|@types)\//.test(declaration.getSourceFile().fileName);
}

function isOurs({ flags, declarations = [] }: ts.Symbol): boolean {
  const isType = (flags & ts.SymbolFlags.TypeParameter) === 0;
  return isType && declarations.some(isInSource);
}

function isInSource(declaration: ts.Declaration): boolean {
  return declaration.getSourceFile().fileName.startsWith(SOURCES);
}

function isError(type: ts.Type): boolean {
  return type.symbol.name === 'Error' || (type.getBaseTypes() ?? []).some(isError);
}

/** As a user writes it: `name?` for what may be left out. */
function nameOf({ name, flags }: ts.Symbol): string {
  return `${name}${flags & ts.SymbolFlags.Optional ? '?' : ''}`;
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
    .filter(
      ({ name, declarations = [] }) =>
        name !== 'prototype' && !name.startsWith('__@asyncDispose') && declarations.every(isPublic),
    );
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

/** The first sentence, of a long one the part before its colon or semicolon, without the form of dates, which the page states once. */
export function firstClause(comment: string): string {
  const sentence = firstSentence(comment)
    .replace(/^ISO 8601, UTC(?:: |.*)/, '')
    .replace(/^[a-z]/, (first) => first.toUpperCase());
  return sentence.split(' ').length > MOST_WORDS
    ? sentence.replace(/^((?:`[^`]*`|\([^)]*\)|[^`(])*?)[;:] .*/, '$1.')
    : sentence;
}

/** Without line breaks, comments, `readonly`, and the separators before closing brackets. */
function oneLine(text: string): string {
  return text
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\breadonly /g, '')
    .replace(/\s+/g, ' ')
    .replace(/[,;]? ([)}])/g, ' $1')
    .replace(/\( /g, '(')
    .replace(/ \)/g, ')')
    .trim();
}
