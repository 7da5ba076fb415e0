/**
 * Compiles the Lua 5.1 that the ledger's scripts are written in to JavaScript, so that the simulation runs the scripts
 * themselves. What no script uses (metatables, `goto`, `break`, functions without a name, …) is refused when it is compiled.
 *
 * A value of Lua is one of JavaScript: nil is undefined. A function returns one value as it is, and several as an array.
 */

export type CompiledScript = (keys: LuaTable, argv: LuaTable) => unknown;

/** Strings are written as in JavaScript. */
const TOKEN =
  /\s+|--(?!\[\[)[^\n]*|[A-Za-z_]\w*|\d+(?:\.\d+)?|'(?:[^'\\\n]|\\[nrt\\'])*'|\.\.|[=~<>]=|[-+*/%#<>=(){}[\],.]/y;
const NAME = /^[A-Za-z_]/;
const KEYWORDS = new Set(
  'and do else elseif end false for function if in local nil not or repeat return then true until while'.split(' '),
);
const REFUSED = ['break', 'goto'];

function tokenize(source: string, chunk: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.length) {
    const at = TOKEN.lastIndex;
    const [text] = TOKEN.exec(source) ?? [];
    if (text === undefined || REFUSED.includes(text))
      throw new SyntaxError(`${chunk}: unexpected ${source.slice(at, at + 20)}`);
    if (!/^\s|^--/.test(text)) tokens.push(text);
  }
  return tokens;
}

type Code = Readonly<{
  js: string;
  /** It may be any number of values: a call, save of a command of Redis. */
  isMany?: boolean;
  isCall?: boolean;
  set?: (value: string) => string;
}>;

type Operator = readonly [left: number, right: number, js: (one: string, other: string) => string];
const arithmetic = (power: number, sign: string): Operator => [
  ...([power, power] as const),
  (one, other) => `(R.number(${one}) ${sign} R.number(${other}))`,
];
const isTrue = (js: string) => `((T = ${js}) !== undefined && T !== false)`;

const OPERATORS: Readonly<Record<string, Operator>> = {
  or: [1, 1, (one, other) => `(${isTrue(one)} ? T : ${other})`],
  and: [2, 2, (one, other) => `(${isTrue(one)} ? ${other} : T)`],
  '==': [3, 3, (one, other) => `(${one} === ${other})`],
  '~=': [3, 3, (one, other) => `(${one} !== ${other})`],
  '<': [3, 3, (one, other) => `R.less(${one}, ${other})`],
  '>': [3, 3, (one, other) => `R.less(${other}, ${one})`],
  '<=': [3, 3, (one, other) => `!R.less(${other}, ${one})`],
  '>=': [3, 3, (one, other) => `!R.less(${one}, ${other})`],
  '..': [5, 4, (one, other) => `R.concat(${one}, ${other})`],
  ...{ '+': arithmetic(6, '+'), '-': arithmetic(6, '-'), '*': arithmetic(7, '*'), '/': arithmetic(7, '/') },
  '%': [7, 7, (one, other) => `R.modulo(R.number(${one}), R.number(${other}))`],
};
const UNARY: Readonly<Record<string, (js: string) => string>> = {
  not: (js) => `!${isTrue(js)}`,
  '#': (js) => `${js}.length`,
  '-': (js) => `(-R.number(${js}))`,
};
const UNARY_POWER = 8;
const ENDS = ['end', 'else', 'elseif', 'until', ''];
const LIBRARIES = ['string', 'table', 'math', 'cjson', 'redis'];

class Compiler {
  readonly #tokens: readonly string[];
  readonly #chunk: string;
  readonly #library = new Map<string, string>();
  readonly #scopes = [new Map(['KEYS', 'ARGV'].map((name) => [name, name]))];
  #at = 0;
  #names = 0;

  constructor(source: string, chunk: string) {
    this.#tokens = tokenize(source, chunk);
    this.#chunk = chunk;
  }

  compile() {
    const body = this.#block();
    if (this.#token !== '') this.#refuse('expected the end');
    const names = [...this.#library].map(([name, js]) => `const ${js} = L['${name}'];`);
    return `"use strict";let T;${names.join('')}return (KEYS, ARGV) => {${body}}`;
  }

  get #token() {
    return this.#tokens[this.#at] ?? '';
  }

  #take() {
    this.#at += 1;
    return this.#tokens[this.#at - 1] ?? '';
  }

  #accept(text: string) {
    return this.#token === text && this.#take() === text;
  }

  #expect(text: string) {
    if (!this.#accept(text)) this.#refuse(`expected ${text}`);
  }

  #refuse(why: string): never {
    const place = this.#tokens.slice(Math.max(0, this.#at - 5), this.#at + 1).join(' ');
    throw new SyntaxError(`${this.#chunk}: ${why} at the end of: ${place}`);
  }

  #name() {
    if (!NAME.test(this.#token) || KEYWORDS.has(this.#token)) this.#refuse('expected a name');
    return this.#take();
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
    while (!ENDS.includes(this.#token)) js.push(this.#accept('return') ? this.#return() : this.#statement());
    return js.join('\n');
  }

  #block() {
    return this.#scoped(() => this.#statements());
  }

  #statement() {
    if (this.#accept('local')) return this.#local();
    if (this.#accept('if')) return this.#if();
    if (this.#accept('for')) return this.#for();
    if (this.#accept('while')) return `while (${isTrue(this.#one())}) ${this.#do()}`;
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
      return `for (;;) {${body}\nif (${isTrue(this.#one())}) break;}`;
    });
  }

  #function() {
    const js = this.#declare(this.#name());
    this.#expect('(');
    return this.#scoped(() => {
      const parameters = this.#token === ')' ? [] : this.#list(() => this.#declare(this.#name()));
      this.#expect(')');
      return `const ${js} = (${parameters.join(',')}) => {${this.#end()}};`;
    });
  }

  #local() {
    if (this.#accept('function')) return this.#function();
    const names = this.#list(() => this.#name());
    if (!this.#accept('=')) return `let ${names.map((name) => this.#declare(name)).join(',')};`;
    const values = this.#expressions();
    const sets = names.map((name) => (value: string) => `let ${this.#declare(name)} = ${value};`);
    return this.#assignAll(values, sets);
  }

  #if(): string {
    const condition = isTrue(this.#one());
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
    const values = ENDS.includes(this.#token) ? [] : this.#expressions();
    if (!ENDS.includes(this.#token)) this.#refuse('expected the end of a block');
    return `return ${values.length > 1 ? toList(values) : (values[0]?.js ?? '')};`;
  }

  #assignmentOrCall() {
    const targets = this.#list(() => this.#suffixed());
    const [call] = targets;
    if (call?.isCall === true && targets.length === 1) return `${call.js};`;
    this.#expect('=');
    const sets = targets.map(({ set }) => set ?? this.#refuse('not to be assigned to'));
    return this.#assignAll(this.#expressions(), sets);
  }

  #assignAll(values: readonly Code[], sets: readonly ((value: string) => string)[]) {
    if (values.length === 1 && sets.length === 1) return sets.map((set) => set(values.map(toOne).join(''))).join('');
    const list = this.#fresh('list');
    return `const ${list} = ${toList(values)};${sets.map((set, index) => set(`${list}[${index}]`)).join('')}`;
  }

  #one(power?: number) {
    return toOne(this.#expression(power));
  }

  #expression(power = 0): Code {
    let left = this.#unary();
    for (;;) {
      const [leftPower, rightPower, make] = OPERATORS[this.#token] ?? [0, 0];
      if (leftPower <= power || make === undefined) return left;
      this.#at += 1;
      left = { js: make(toOne(left), this.#one(rightPower)) };
    }
  }

  #unary(): Code {
    const make = UNARY[this.#token];
    if (make === undefined) return this.#simple();
    this.#at += 1;
    return { js: make(this.#one(UNARY_POWER)) };
  }

  #simple(): Code {
    if (/^[\d']/.test(this.#token)) return { js: this.#take() };
    if (this.#accept('nil')) return { js: 'undefined' };
    if (['true', 'false'].includes(this.#token)) return { js: this.#take() };
    return this.#accept('{') ? this.#table() : this.#suffixed();
  }

  #table(): Code {
    const items: Code[] = [];
    const fields: string[] = [];
    while (!this.#accept('}')) {
      if (this.#tokens[this.#at + 1] === '=') {
        const name = this.#name();
        this.#expect('=');
        fields.push(`['${name}',${this.#one()}]`);
      } else items.push(this.#expression());
      if (!this.#accept(',') && this.#token !== '}') this.#refuse('expected }');
    }
    return { js: `R.table(${toList(items)},[${fields.join(',')}])` };
  }

  #suffixed(): Code {
    let code = this.#primary();
    for (;;) {
      if (this.#accept('.')) code = indexed(code, `'${this.#name()}'`);
      else if (this.#accept('[')) {
        code = indexed(code, this.#one());
        this.#expect(']');
      } else if (this.#accept('(')) {
        const given = this.#token === ')' ? '' : toItems(this.#expressions());
        this.#expect(')');
        // Redis takes a list, and replies with one value.
        const isCommand = /^L\$redis\$p?call$/.test(code.js);
        code = { js: `${code.js}(${isCommand ? `[${given}]` : given})`, isMany: !isCommand, isCall: true };
      } else return code;
    }
  }

  #primary(): Code {
    if (this.#accept('(')) {
      const js = `(${this.#one()})`;
      this.#expect(')');
      return { js };
    }
    const name = this.#name();
    const local = this.#scopes.findLast((scope) => scope.has(name))?.get(name);
    if (local !== undefined) return { js: local, set: (value) => `${local} = ${value};` };
    if (!LIBRARIES.includes(name)) return this.#fromLibrary(name);
    this.#expect('.');
    return this.#fromLibrary(`${name}.${this.#name()}`);
  }

  #fromLibrary(name: string): Code {
    const js = `L$${name.replace('.', '$')}`;
    this.#library.set(name, js);
    return { js };
  }
}

function indexed(code: Code, key: string): Code {
  const table = toOne(code);
  return { js: `${table}.get(${key})`, set: (value) => `${table}.set(${key},${value});` };
}

const toOne = ({ js, isMany }: Code) => (isMany === true ? `R.one(${js})` : js);

function toItems(values: readonly Code[]) {
  const isLast = (index: number) => index === values.length - 1;
  return values
    .map((value, index) => (isLast(index) && value.isMany === true ? `...R.many(${value.js})` : toOne(value)))
    .join(',');
}

const toList = (values: readonly Code[]) => `[${toItems(values)}]`;

export function compileLua(source: string, chunk: string, library: Readonly<Record<string, unknown>>): CompiledScript {
  const script = new Compiler(source, chunk).compile();
  // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call -- the compiler's own output
  return new Function('R', 'L', script)(RUNTIME, library) as CompiledScript;
}

function toNumber(value: unknown) {
  const number = parseNumber(value);
  if (number === undefined) throw new Error(`attempt to perform arithmetic on a ${typeName(value)} value`);
  return number;
}

export function parseNumber(value: unknown, base = 10): number | undefined {
  if (typeof value !== 'string') return typeof value === 'number' ? value : undefined;
  const text = value.trim().toLowerCase();
  if (text === '-infinity') return -Infinity;
  if (base === 36) return /^[\da-z]+$/.test(text) ? Number.parseInt(text, base) : undefined;
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/.test(text) ? Number(text) : undefined;
}

export function typeName(value: unknown): string {
  if (value === undefined) return 'nil';
  return value instanceof LuaTable ? 'table' : typeof value;
}

/** Lua keeps fourteen digits, which is less than JavaScript has. */
export function numberToText(number: number): string {
  if (!Number.isInteger(number) || Math.abs(number) >= 1e14) throw new Error(`no script writes ${number}`);
  return String(number);
}

function toText(value: unknown) {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberToText(value);
  throw new Error(`attempt to concatenate a ${typeName(value)} value`);
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
  table: (items: unknown[], fields: readonly (readonly [string, unknown])[]) => {
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

  get length() {
    return this.items.length;
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
