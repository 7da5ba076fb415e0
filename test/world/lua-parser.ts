/**
 * Compiles the Lua 5.1 that the ledger's scripts are written in to JavaScript, so that the simulation runs the scripts
 * themselves. What the scripts do not use (metatables, coroutines, `goto`, long strings) is refused when it is compiled.
 *
 * A value of Lua is one of JavaScript: nil is undefined. A function returns one value as it is, and several as an array.
 */

type Library = Readonly<Record<string, unknown>>;

export type CompiledScript = (keys: LuaTable, argv: LuaTable) => unknown;

export function compileLua(source: string, chunk: string, library: Library): CompiledScript {
  const { body, head } = new Compiler(source, chunk).compile();
  const script = `"use strict";let T;${head}return (KEYS, ARGV) => {${body}}`;
  // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call -- the compiler's own output
  return new Function('R', 'L', script)(RUNTIME, library) as CompiledScript;
}

type Token = Readonly<{ kind: string; text: string; line: number }>;

const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
);
const TOKEN =
  /(?<space>\s+|--(?!\[\[)[^\n]*)|(?<name>[A-Za-z_]\w*)|(?<number>0[xX][\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|(?<symbol>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.])/y;

function tokenize(source: string, chunk: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.length) {
    const at = TOKEN.lastIndex;
    const groups = TOKEN.exec(source)?.groups;
    const [kind, text] = Object.entries(groups ?? {}).find(([, found]) => Boolean(found)) ?? [];
    if (kind === undefined || text === undefined)
      throw new SyntaxError(`${chunk}:${line}: unexpected ${source.slice(at, at + 20)}`);
    if (kind === 'space') line += text.split('\n').length - 1;
    else tokens.push({ kind: KEYWORDS.has(text) ? 'keyword' : kind, text, line });
  }
  return [...tokens, { kind: 'end', text: '<end>', line }];
}

type Code = Readonly<{
  js: string;
  /** It may be any number of values: a call, save of a command of Redis. */
  isMany?: boolean;
  isCall?: boolean;
  isBoolean?: boolean;
}>;

type Operator = readonly [left: number, right: number, js: (one: string, other: string) => string];
const arithmetic = (power: number, sign: string): Operator => [
  ...([power, power] as const),
  (one, other) => `(R.number(${one}) ${sign} R.number(${other}))`,
];
const COMPARES = 3;

const OPERATORS: Readonly<Record<string, Operator>> = {
  or: [1, 1, (one, other) => `(${isTrue({ js: one })} ? T : ${other})`],
  and: [2, 2, (one, other) => `(${isTrue({ js: one })} ? ${other} : T)`],
  '==': [COMPARES, COMPARES, (one, other) => `(${one} === ${other})`],
  '~=': [COMPARES, COMPARES, (one, other) => `(${one} !== ${other})`],
  '<': [COMPARES, COMPARES, (one, other) => `R.less(${one}, ${other})`],
  '>': [COMPARES, COMPARES, (one, other) => `R.less(${other}, ${one})`],
  '<=': [COMPARES, COMPARES, (one, other) => `!R.less(${other}, ${one})`],
  '>=': [COMPARES, COMPARES, (one, other) => `!R.less(${one}, ${other})`],
  '..': [5, 4, (one, other) => `R.concat(${one}, ${other})`],
  ...{ '+': arithmetic(6, '+'), '-': arithmetic(6, '-'), '*': arithmetic(7, '*'), '/': arithmetic(7, '/') },
  '%': [7, 7, (one, other) => `R.modulo(R.number(${one}), R.number(${other}))`],
};
const UNARY: Readonly<Record<string, (code: Code) => Code>> = {
  not: (code) => ({ js: `!${isTrue(code)}`, isBoolean: true }),
  '#': (code) => ({ js: `R.length(${toOne(code)})` }),
  '-': (code) => ({ js: `(-R.number(${toOne(code)}))` }),
};
const UNARY_POWER = 8;
const ENDS = ['end', 'else', 'elseif', 'until', '<end>'];
const LIBRARIES = ['string', 'table', 'math', 'cjson', 'redis'];

class Compiler {
  readonly #tokens: readonly Token[];
  readonly #chunk: string;
  #at = 0;
  #names = 0;
  readonly #library = new Map<string, string>();
  readonly #scopes = [new Map(['KEYS', 'ARGV'].map((name) => [name, name]))];

  constructor(source: string, chunk: string) {
    this.#tokens = tokenize(source, chunk);
    this.#chunk = chunk;
  }

  compile() {
    const body = this.#block();
    this.#expect('<end>');
    const names = [...this.#library].map(([name, js]) => `const ${js} = L[${JSON.stringify(name)}];`);
    return { body, head: names.join('') };
  }

  get #token() {
    return this.#tokens[this.#at] as Token;
  }

  #is(...texts: readonly string[]) {
    return texts.includes(this.#token.text) && this.#token.kind !== 'string';
  }

  #accept(text: string) {
    const isNext = this.#is(text);
    if (isNext) this.#at += 1;
    return isNext;
  }

  #expect(text: string) {
    if (!this.#accept(text)) this.#refuse(`expected ${text}`);
  }

  #refuse(why: string): never {
    throw new SyntaxError(`${this.#chunk}:${this.#token.line}: ${why}, at ${this.#token.text}`);
  }

  #name() {
    const { kind, text } = this.#token;
    if (kind !== 'name') this.#refuse('expected a name');
    this.#at += 1;
    return text;
  }

  #list<Item>(parse: () => Item) {
    const items = [parse()];
    while (this.#accept(',')) items.push(parse());
    return items;
  }

  readonly #expressions = () => this.#list(() => this.#expression());

  #fresh(name: string) {
    return `${name}$${(this.#names += 1)}`;
  }

  #declare(name: string) {
    const js = this.#fresh(name);
    this.#scopes.at(-1)?.set(name, js);
    return js;
  }

  #scoped(parse: () => string) {
    this.#scopes.push(new Map());
    const js = parse();
    this.#scopes.pop();
    return js;
  }

  #statements() {
    const js: string[] = [];
    while (!this.#is(...ENDS)) {
      const isLast = this.#is('return', 'break');
      js.push(this.#statement());
      this.#accept(';');
      if (isLast) break;
    }
    return js.join('\n');
  }

  #block() {
    return this.#scoped(() => this.#statements());
  }

  #statement() {
    if (this.#accept('local')) return this.#local();
    if (this.#accept('if')) return this.#if();
    if (this.#accept('for')) return this.#for();
    if (this.#accept('return')) return this.#return();
    if (this.#accept('break')) return 'break;';
    if (this.#accept('while')) return `while (${isTrue(this.#expression())}) ${this.#do()}`;
    if (this.#is('do')) return this.#do();
    if (this.#accept('repeat')) return this.#repeat();
    return this.#assignmentOrCall();
  }

  #do() {
    this.#expect('do');
    return `{${this.#end()}}`;
  }

  #end() {
    const body = this.#block();
    this.#expect('end');
    return body;
  }

  /** Its condition sees the locals of its body. */
  #repeat() {
    return this.#scoped(() => {
      const body = this.#statements();
      this.#expect('until');
      return `for (;;) {${body}\nif (${isTrue(this.#expression())}) break;}`;
    });
  }

  #function() {
    this.#expect('(');
    return this.#scoped(() => {
      const parameters = this.#is(')') ? [] : this.#list(() => this.#declare(this.#name()));
      this.#expect(')');
      return `(${parameters.join(',')}) => {${this.#end()}}`;
    });
  }

  #local() {
    if (this.#accept('function')) return `const ${this.#declare(this.#name())} = ${this.#function()};`;
    const names = this.#list(() => this.#name());
    if (!this.#accept('=')) return `let ${names.map((name) => this.#declare(name)).join(',')};`;
    const values = this.#expressions();
    return this.#assignAll(
      values,
      names.map((name) => (value) => `let ${this.#declare(name)} = ${value};`),
    );
  }

  #if(): string {
    const condition = isTrue(this.#expression());
    this.#expect('then');
    const then = `if (${condition}) {${this.#block()}}`;
    if (this.#accept('elseif')) return `${then} else ${this.#if()}`;
    if (this.#accept('else')) return `${then} else {${this.#end()}}`;
    this.#expect('end');
    return then;
  }

  #for() {
    const names = this.#list(() => this.#name());
    const isCounting = this.#accept('=');
    if (!isCounting) this.#expect('in');
    const [from = '', to, step = '1'] = this.#expressions().map(toOne);
    if (!/^\d+$/.test(step)) this.#refuse('a step has to be a positive number');
    return this.#scoped(() => {
      const [name = '', ...more] = names.map((each) => this.#declare(each));
      if (!isCounting) return `for (const [${[name, ...more].join(',')}] of ${from}) ${this.#do()}`;
      const limit = this.#fresh('limit');
      const head = `let ${name} = R.number(${from}), ${limit} = R.number(${to}); ${name} <= ${limit}; ${name} += ${step}`;
      return `for (${head}) ${this.#do()}`;
    });
  }

  #return() {
    if (this.#is(...ENDS, ';')) return 'return;';
    const values = this.#expressions();
    return `return ${values.length === 1 ? values.map(({ js }) => js).join('') : toList(values)};`;
  }

  #assignmentOrCall() {
    const targets = this.#list(() => this.#suffixed());
    const [call] = targets;
    if (call?.isCall === true && targets.length === 1) return `${call.js};`;
    this.#expect('=');
    const values = this.#expressions();
    return this.#assignAll(
      values,
      targets.map((target) => (value) => this.#assign(target, value)),
    );
  }

  #assignAll(values: readonly Code[], assigns: readonly ((value: string) => string)[]) {
    const isOne = values.length === 1 && assigns.length === 1;
    const list = this.#fresh('list');
    const js = assigns.map((assign, index) => assign(isOne ? values.map(toOne).join('') : `${list}[${index}]`));
    return `${isOne ? '' : `const ${list} = ${toList(values)};`}${js.join('')}`;
  }

  #assign({ js, isCall }: Code, value: string) {
    if (isCall === true) this.#refuse('a call cannot be assigned to');
    const index = /^R\.index\((.*)\)$/s.exec(js)?.[1];
    return index === undefined ? `${js} = ${value};` : `R.set(${index},${value});`;
  }

  #expression(power = 0): Code {
    let left = this.#unary();
    for (;;) {
      const { text, kind } = this.#token;
      const [leftPower, rightPower, make] = (kind === 'string' ? undefined : OPERATORS[text]) ?? [0, 0];
      if (leftPower <= power || make === undefined) return left;
      this.#at += 1;
      left = { js: make(toOne(left), toOne(this.#expression(rightPower))), isBoolean: leftPower === COMPARES };
    }
  }

  #unary(): Code {
    const { kind, text } = this.#token;
    const make = kind === 'string' ? undefined : UNARY[text];
    if (make === undefined) return this.#simple();
    this.#at += 1;
    return make(this.#expression(UNARY_POWER));
  }

  #simple(): Code {
    const { kind, text } = this.#token;
    if (kind === 'number' || kind === 'string') {
      this.#at += 1;
      return { js: kind === 'number' ? String(Number(text)) : JSON.stringify(unquote(text)) };
    }
    if (this.#accept('nil')) return { js: 'undefined' };
    if (this.#accept('true')) return { js: 'true', isBoolean: true };
    if (this.#accept('false')) return { js: 'false', isBoolean: true };
    if (this.#accept('function')) return { js: this.#function() };
    return this.#accept('{') ? this.#table() : this.#suffixed();
  }

  #table(): Code {
    const items: Code[] = [];
    const fields: string[] = [];
    while (!this.#accept('}')) {
      const next = this.#tokens[this.#at + 1];
      const isNamed = this.#token.kind === 'name' && next?.text === '=' && next.kind === 'symbol';
      if (isNamed || this.#is('[')) {
        const key = isNamed ? JSON.stringify(this.#name()) : this.#inBrackets();
        this.#expect('=');
        fields.push(`[${key},${toOne(this.#expression())}]`);
      } else items.push(this.#expression());
      if (!this.#accept(',')) this.#accept(';');
    }
    return { js: `R.table(${toList(items)}${fields.length === 0 ? '' : `,[${fields.join(',')}]`})` };
  }

  #inBrackets() {
    this.#expect('[');
    const key = toOne(this.#expression());
    this.#expect(']');
    return key;
  }

  #suffixed(): Code {
    let code = this.#primary();
    for (;;) {
      if (this.#accept('.')) code = { js: `R.index(${toOne(code)},${JSON.stringify(this.#name())})` };
      else if (this.#is('[')) code = { js: `R.index(${toOne(code)},${this.#inBrackets()})` };
      else if (this.#accept('(')) {
        const given = this.#is(')') ? '' : toItems(this.#expressions());
        this.#expect(')');
        // Redis takes a list, and replies with one value.
        const isCommand = /^L\$redis\$p?call$/.test(code.js);
        code = { js: `${code.js}(${isCommand ? `[${given}]` : given})`, isMany: !isCommand, isCall: true };
      } else return code;
    }
  }

  #primary(): Code {
    if (this.#accept('(')) {
      const code = this.#expression();
      this.#expect(')');
      return { js: `(${toOne(code)})` };
    }
    const name = this.#name();
    const local = this.#scopes.findLast((scope) => scope.has(name))?.get(name);
    if (local !== undefined) return { js: local };
    if (!LIBRARIES.includes(name)) return { js: this.#fromLibrary(name) };
    this.#expect('.');
    return { js: this.#fromLibrary(`${name}.${this.#name()}`) };
  }

  #fromLibrary(name: string) {
    const js = `L$${name.replace('.', '$')}`;
    this.#library.set(name, js);
    return js;
  }
}

const toOne = ({ js, isMany }: Code) => (isMany === true ? `R.one(${js})` : js);

function isTrue(code: Code) {
  return code.isBoolean === true ? code.js : `((T = ${toOne(code)}) !== undefined && T !== false)`;
}

function toItems(values: readonly Code[]) {
  const isLast = (index: number) => index === values.length - 1;
  return values
    .map((value, index) => (isLast(index) && value.isMany === true ? `...R.many(${value.js})` : toOne(value)))
    .join(',');
}

const toList = (values: readonly Code[]) => `[${toItems(values)}]`;

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' };

function unquote(text: string) {
  return text.slice(1, -1).replaceAll(/\\(\d{1,3}|.)/g, (_, escape: string) => {
    return ESCAPES[escape] ?? String.fromCharCode(Number(escape));
  });
}

function toNumber(value: unknown) {
  if (typeof value === 'number') return value;
  const number = parseNumber(value);
  if (number === undefined) throw new Error(`attempt to perform arithmetic on a ${typeName(value)} value`);
  return number;
}

export function parseNumber(value: unknown, base = 10): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return undefined;
  const text = value.trim().toLowerCase();
  if (base !== 10) {
    const digits = '0123456789abcdefghijklmnopqrstuvwxyz'.slice(0, base);
    return text !== '' && text.split('').every((digit) => digits.includes(digit))
      ? Number.parseInt(text, base)
      : undefined;
  }
  const infinite = /^([-+]?)inf(?:inity)?$/.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity;
  return /^[-+]?(?:0x[\da-f]+|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)$/.test(text) ? Number(text) : undefined;
}

export function typeName(value: unknown): string {
  if (value === undefined) return 'nil';
  if (value instanceof LuaTable) return 'table';
  return typeof value;
}

export function numberToText(number: number): string {
  if (Number.isInteger(number) && Math.abs(number) < 1e14) return Object.is(number, -0) ? '-0' : String(number);
  const [digits = '', exponent] = number.toPrecision(14).split('e');
  const short = digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
  return exponent === undefined ? short : `${short}e${exponent.replace(/^([+-])(\d)$/, '$10$2')}`;
}

function toText(value: unknown) {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberToText(value);
  throw new Error(`attempt to concatenate a ${typeName(value)} value`);
}

function isTable(value: unknown, doing: string): asserts value is LuaTable {
  if (!(value instanceof LuaTable)) throw new Error(`attempt to ${doing} a ${typeName(value)} value`);
}

const RUNTIME = {
  number: toNumber,
  one: (values: unknown): unknown => (Array.isArray(values) ? values[0] : values),
  many: (values: unknown): readonly unknown[] =>
    Array.isArray(values) ? values : values === undefined ? [] : [values],
  concat: (left: unknown, right: unknown) => toText(left) + toText(right),
  modulo: (number: number, by: number) => number - Math.floor(number / by) * by,
  less: (left: unknown, right: unknown) => {
    if (typeof left === 'number' && typeof right === 'number') return left < right;
    if (typeof left === 'string' && typeof right === 'string') return left < right;
    throw new Error(`attempt to compare ${typeName(left)} with ${typeName(right)}`);
  },
  length: (value: unknown) => {
    if (typeof value === 'string') return value.length;
    isTable(value, 'get length of');
    return value.items.length;
  },
  index: (table: unknown, key: unknown) => {
    isTable(table, 'index');
    return table.get(key);
  },
  set: (table: unknown, key: unknown, value: unknown) => {
    isTable(table, 'index');
    table.set(key, value);
  },
  table: (items: unknown[], fields: readonly (readonly [unknown, unknown])[] = []) => {
    const table = new LuaTable(items);
    for (const [key, value] of fields) table.set(key, value);
    return table;
  },
};

export class LuaTable {
  readonly items: unknown[];
  fields: Map<unknown, unknown> | undefined;

  constructor(items: unknown[] = []) {
    this.items = items;
    this.#trim();
  }

  get(key: unknown): unknown {
    if (typeof key === 'number' && key >= 1 && key <= this.items.length) return this.items[key - 1];
    return this.fields?.get(key);
  }

  set(key: unknown, value: unknown) {
    const { items } = this;
    if (typeof key === 'number' && Number.isInteger(key) && key >= 1 && key <= items.length + 1) {
      items[key - 1] = value;
      if (value === undefined) this.#trim();
      else if (key === items.length) this.#takeNext();
    } else if (value === undefined) this.fields?.delete(key);
    else {
      if (key === undefined) throw new Error('table index is nil');
      (this.fields ??= new Map()).set(key, value);
    }
  }

  *entries(): Generator<[unknown, unknown]> {
    for (const [index, value] of this.items.entries()) if (value !== undefined) yield [index + 1, value];
    if (this.fields !== undefined) yield* [...this.fields];
  }

  #takeNext() {
    const { fields, items } = this;
    if (fields === undefined) return;
    for (let key = items.length + 1; fields.has(key); key += 1) {
      items.push(fields.get(key));
      fields.delete(key);
    }
  }

  #trim() {
    while (this.items.length > 0 && this.items.at(-1) === undefined) this.items.pop();
  }
}
