/**
 * Compiles the Lua 5.1 that the ledger's scripts are written in to JavaScript, so that the simulation runs the scripts
 * themselves. What no script uses (metatables, `goto`, `break`, functions without a name, …) is refused when it is compiled.
 * A value of Lua is one of JavaScript: nil is undefined. A function returns one value as it is, and several as an array.
 */

export type CompiledScript = (keys: LuaTable, argv: LuaTable) => unknown;

/** Strings are written as in JavaScript. */
const TOKEN =
  /\s+|--(?!\[\[)[^\n]*|[A-Za-z_]\w*|\d+(?:\.\d+)?|'(?:[^'\\\n]|\\[nrt\\'])*'|\.\.|[=~<>]=|[-+*/%#<>=(){}[\],.]/y;
const NAME = /^[A-Za-z_]/;
const KEYWORDS = new Set(
  'and break do else elseif end false for function goto if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
);

function tokenize(source: string, chunk: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.length) {
    const at = TOKEN.lastIndex;
    const [text] = TOKEN.exec(source) ?? [];
    if (text === undefined) throw new SyntaxError(`${chunk}: unexpected ${source.slice(at, at + 20)}`);
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

/** In what it returns, `R` is the runtime and `L` the library. */
function translate(source: string, chunk: string): string {
  const tokens = tokenize(source, chunk);
  const used = new Map<string, string>();
  const scopes = [new Map(['KEYS', 'ARGV'].map((name) => [name, name]))];
  let at = 0;
  let names = 0;

  const token = () => tokens[at] ?? '';
  const take = () => tokens[at++] ?? '';

  function accept(text: string) {
    return token() === text && take() === text;
  }

  function expect(text: string) {
    if (!accept(text)) refuse(`expected ${text}`);
  }

  function refuse(why: string): never {
    const place = tokens.slice(Math.max(0, at - 5), at + 1).join(' ');
    throw new SyntaxError(`${chunk}: ${why} at the end of: ${place}`);
  }

  function takeName() {
    if (!NAME.test(token()) || KEYWORDS.has(token())) refuse('expected a name');
    return take();
  }

  function list<Item>(parse: () => Item) {
    const items = [parse()];
    while (accept(',')) items.push(parse());
    return items;
  }

  const expressions = () => list(() => expression());

  function fresh(name: string) {
    return `${name}$${(names += 1)}`;
  }

  function declare(name: string) {
    const js = fresh(name);
    scopes.at(-1)?.set(name, js);
    return js;
  }

  function scoped(parse: () => string) {
    scopes.push(new Map());
    const js = parse();
    scopes.pop();
    return js;
  }

  function statements() {
    const js: string[] = [];
    while (!ENDS.includes(token())) js.push(accept('return') ? returned() : statement());
    return js.join('\n');
  }

  const block = () => scoped(statements);

  function statement() {
    if (accept('local')) return localNames();
    if (accept('if')) return branch();
    if (accept('for')) return loop();
    if (accept('while')) return `while (${isTrue(one())}) ${doBlock()}`;
    if (accept('repeat')) return repetition();
    return assignmentOrCall();
  }

  function doBlock() {
    expect('do');
    return `{${blockToEnd()}}`;
  }

  function blockToEnd() {
    const body = block();
    expect('end');
    return body;
  }

  /** Its condition sees the locals of its body. */
  function repetition() {
    return scoped(() => {
      const body = statements();
      expect('until');
      return `for (;;) {${body}\nif (${isTrue(one())}) break;}`;
    });
  }

  function localFunction() {
    const js = declare(takeName());
    expect('(');
    return scoped(() => {
      const parameters = token() === ')' ? [] : list(() => declare(takeName()));
      expect(')');
      return `const ${js} = (${parameters.join(',')}) => {${blockToEnd()}};`;
    });
  }

  function localNames() {
    if (accept('function')) return localFunction();
    const names = list(takeName);
    if (!accept('=')) return `let ${names.map(declare).join(',')};`;
    const sets = names.map((name) => (value: string) => `let ${declare(name)} = ${value};`);
    return assignAll(expressions(), sets);
  }

  function branch(): string {
    const condition = isTrue(one());
    expect('then');
    const then = `if (${condition}) {${block()}}`;
    if (accept('elseif')) return `${then} else ${branch()}`;
    if (accept('else')) return `${then} else {${blockToEnd()}}`;
    expect('end');
    return then;
  }

  function loop() {
    const names = list(takeName);
    const isCounting = accept('=');
    if (!isCounting) expect('in');
    const [from = '', to, step = '1'] = expressions().map(toOne);
    if (!/^\d+$/.test(step)) refuse('a step has to be a positive number');
    return scoped(() => {
      const [name = '', ...more] = names.map(declare);
      if (!isCounting) return `for (const [${[name, ...more].join(',')}] of ${from}) ${doBlock()}`;
      const limit = fresh('limit');
      const head = `let ${name} = R.number(${from}), ${limit} = R.number(${to}); ${name} <= ${limit}; ${name} += ${step}`;
      return `for (${head}) ${doBlock()}`;
    });
  }

  function returned() {
    const values = ENDS.includes(token()) ? [] : expressions();
    if (!ENDS.includes(token())) refuse('expected the end of a block');
    return `return ${values.length > 1 ? toList(values) : (values[0]?.js ?? '')};`;
  }

  function assignmentOrCall() {
    const targets = list(suffixed);
    const [call] = targets;
    if (call?.isCall === true && targets.length === 1) return `${call.js};`;
    expect('=');
    const sets = targets.map(({ set }) => set ?? refuse('not to be assigned to'));
    return assignAll(expressions(), sets);
  }

  function assignAll(values: readonly Code[], sets: readonly ((value: string) => string)[]) {
    if (values.length === 1 && sets.length === 1) return sets.map((set) => set(values.map(toOne).join(''))).join('');
    const all = fresh('list');
    return `const ${all} = ${toList(values)};${sets.map((set, index) => set(`${all}[${index}]`)).join('')}`;
  }

  const one = (power?: number) => toOne(expression(power));

  function expression(power = 0): Code {
    let left = unary();
    for (;;) {
      const [leftPower, rightPower, make] = OPERATORS[token()] ?? [0, 0];
      if (leftPower <= power || make === undefined) return left;
      at += 1;
      left = { js: make(toOne(left), one(rightPower)) };
    }
  }

  function unary(): Code {
    const make = UNARY[token()];
    if (make === undefined) return simple();
    at += 1;
    return { js: make(one(UNARY_POWER)) };
  }

  function simple(): Code {
    if (/^[\d']/.test(token())) return { js: take() };
    if (accept('nil')) return { js: 'undefined' };
    if (['true', 'false'].includes(token())) return { js: take() };
    return accept('{') ? table() : suffixed();
  }

  function table(): Code {
    const items: Code[] = [];
    const fields: string[] = [];
    while (!accept('}')) {
      if (tokens[at + 1] === '=') {
        const name = takeName();
        expect('=');
        fields.push(`['${name}',${one()}]`);
      } else items.push(expression());
      if (!accept(',') && token() !== '}') refuse('expected }');
    }
    return { js: `R.table(${toList(items)},[${fields.join(',')}])` };
  }

  function suffixed(): Code {
    let code = primary();
    for (;;) {
      if (accept('.')) code = indexed(code, `'${takeName()}'`);
      else if (accept('[')) {
        code = indexed(code, one());
        expect(']');
      } else if (accept('(')) {
        const given = token() === ')' ? '' : toItems(expressions());
        expect(')');
        // Redis takes a list, and replies with one value.
        const isCommand = /^L\$redis\$p?call$/.test(code.js);
        code = { js: `${code.js}(${isCommand ? `[${given}]` : given})`, isMany: !isCommand, isCall: true };
      } else return code;
    }
  }

  function primary(): Code {
    if (accept('(')) {
      const js = `(${one()})`;
      expect(')');
      return { js };
    }
    const name = takeName();
    const local = scopes.findLast((scope) => scope.has(name))?.get(name);
    if (local !== undefined) return { js: local, set: (value) => `${local} = ${value};` };
    if (!LIBRARIES.includes(name)) return fromLibrary(name);
    expect('.');
    return fromLibrary(`${name}.${takeName()}`);
  }

  function fromLibrary(name: string): Code {
    const js = `L$${name.replace('.', '$')}`;
    used.set(name, js);
    return { js };
  }

  const script = block();
  if (token() !== '') refuse('expected the end');
  const constants = [...used].map(([name, js]) => `const ${js} = L['${name}'];`);
  return `"use strict";let T;${constants.join('')}return (KEYS, ARGV) => {${script}}`;
}

function indexed(code: Code, key: string): Code {
  const table = toOne(code);
  return { js: `${table}.get(${key})`, set: (value) => `${table}.set(${key},${value});` };
}

const toOne = ({ js, isMany }: Code) => (isMany === true ? `R.one(${js})` : js);

function toItems(values: readonly Code[]) {
  const toItem = (value: Code, index: number) =>
    index === values.length - 1 && value.isMany === true ? `...R.many(${value.js})` : toOne(value);
  return values.map(toItem).join(',');
}

const toList = (values: readonly Code[]) => `[${toItems(values)}]`;

export function compileLua(source: string, chunk: string, library: Readonly<Record<string, unknown>>): CompiledScript {
  const script = translate(source, chunk);
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
