/**
 * Compiles the Lua 5.1 that the ledger's scripts are written in to JavaScript, so that the simulation runs the scripts
 * themselves. What the scripts do not use (metatables, coroutines, `goto`, long strings) is refused when it is compiled.
 *
 * A value of Lua is one of JavaScript: nil is undefined. A function returns one value as it is, and several as an array.
 */

export type Library = Readonly<Record<string, unknown>>;

export type CompiledScript = (keys: LuaTable, argv: LuaTable) => unknown;

export function compileLua(source: string, chunk: string, library: Library): CompiledScript {
  const { body, head } = new Compiler(source, chunk).compile();
  const script = `"use strict";let T;${head}return (KEYS, ARGV) => {${body}}`;
  // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call -- the compiler's own output
  return new Function('R', 'L', script)(RUNTIME, library) as CompiledScript;
}

interface Token {
  readonly kind: string;
  readonly text: string;
  readonly line: number;
}

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

interface Code {
  readonly js: string;
  /** It may be any number of values: a call. */
  readonly isMany?: boolean;
  readonly isCall?: boolean;
  readonly isBoolean?: boolean;
  /** As a condition, where that is shorter than testing its value. */
  readonly condition?: string;
}

const BINARY: Readonly<Record<string, readonly [number, number]>> = {
  ...{ or: [1, 1], and: [2, 2], '<': [3, 3], '>': [3, 3], '<=': [3, 3], '>=': [3, 3], '~=': [3, 3], '==': [3, 3] },
  ...{ '..': [5, 4], '+': [6, 6], '-': [6, 6], '*': [7, 7], '/': [7, 7], '%': [7, 7] },
};
const UNARY_POWER = 8;

const COMPARISONS: Readonly<Record<string, (one: string, other: string) => string>> = {
  '==': (one, other) => `(${one} === ${other})`,
  '~=': (one, other) => `(${one} !== ${other})`,
  '<': (one, other) => `R.less(${one}, ${other})`,
  '>': (one, other) => `R.less(${other}, ${one})`,
  '<=': (one, other) => `!R.less(${other}, ${one})`,
  '>=': (one, other) => `!R.less(${one}, ${other})`,
};
const ENDS = ['end', 'else', 'elseif', 'until', '<end>'];

class Compiler {
  readonly #tokens: readonly Token[];
  readonly #chunk: string;
  #at = 0;
  #names = 0;
  readonly #library = new Map<string, string>();
  #scopes: Map<string, string>[] = [new Map(['KEYS', 'ARGV'].map((name) => [name, name]))];

  constructor(source: string, chunk: string) {
    this.#tokens = tokenize(source, chunk);
    this.#chunk = chunk;
  }

  compile(): { readonly body: string; readonly head: string } {
    const body = this.#block();
    this.#expect('<end>');
    const names = [...this.#library].map(([name, js]) => `const ${js} = L[${JSON.stringify(name)}];`);
    return { body, head: names.join('') };
  }

  get #token(): Token {
    return this.#tokens[this.#at] as Token;
  }

  #is(text: string): boolean {
    return this.#token.text === text && this.#token.kind !== 'string';
  }

  #accept(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#at += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.#accept(text)) this.#refuse(`expected ${text}`);
  }

  #refuse(why: string): never {
    throw new SyntaxError(`${this.#chunk}:${this.#token.line}: ${why}, at ${this.#token.text}`);
  }

  #name(): string {
    const { kind, text } = this.#token;
    if (kind !== 'name') this.#refuse('expected a name');
    this.#at += 1;
    return text;
  }

  #declare(name: string): string {
    const js = `${name}$${(this.#names += 1)}`;
    this.#scopes.at(-1)?.set(name, js);
    return js;
  }

  #resolve(name: string): string | undefined {
    return this.#scopes.findLast((scope) => scope.has(name))?.get(name);
  }

  #block(): string {
    this.#scopes.push(new Map());
    const js: string[] = [];
    while (!ENDS.some((end) => this.#is(end))) {
      const isLast = this.#is('return') || this.#is('break');
      js.push(this.#statement());
      this.#accept(';');
      if (isLast) break;
    }
    this.#scopes.pop();
    return js.join('\n');
  }

  #statement(): string {
    if (this.#accept('local')) return this.#accept('function') ? this.#localFunction() : this.#local();
    if (this.#accept('if')) return this.#if();
    if (this.#accept('for')) return this.#for();
    if (this.#accept('return')) return this.#return();
    if (this.#accept('break')) return 'break;';
    if (this.#accept('while')) {
      const condition = toCondition(this.#expression());
      return `while (${condition}) {${this.#do()}}`;
    }
    if (this.#accept('do')) return `{${this.#end()}}`;
    if (this.#accept('repeat')) return this.#repeat();
    return this.#assignmentOrCall();
  }

  #do(): string {
    this.#expect('do');
    return this.#end();
  }

  #end(): string {
    const body = this.#block();
    this.#expect('end');
    return body;
  }

  /** Its condition sees the locals of its body. */
  #repeat(): string {
    this.#scopes.push(new Map());
    const js: string[] = [];
    while (!this.#is('until')) js.push(this.#statement());
    this.#expect('until');
    const condition = toCondition(this.#expression());
    this.#scopes.pop();
    return `for (;;) {${js.join('\n')}\nif (${condition}) break;}`;
  }

  #localFunction(): string {
    const name = this.#declare(this.#name());
    return `const ${name} = ${this.#function()};`;
  }

  #function(): string {
    this.#expect('(');
    this.#scopes.push(new Map());
    const parameters: string[] = [];
    while (!this.#accept(')')) {
      parameters.push(this.#declare(this.#name()));
      this.#accept(',');
    }
    const body = this.#end();
    this.#scopes.pop();
    return `(${parameters.join(',')}) => {${body}}`;
  }

  #local(): string {
    const names = [this.#name()];
    while (this.#accept(',')) names.push(this.#name());
    const values = this.#accept('=') ? this.#expressions() : [];
    const [value] = values;
    if (names.length === 1 && values.length <= 1) {
      const [name = ''] = names;
      const js = value === undefined ? 'undefined' : toOne(value);
      return `let ${this.#declare(name)} = ${js};`;
    }
    const list = `list$${(this.#names += 1)}`;
    const locals = names.map((name, index) => `${this.#declare(name)} = ${list}[${index}]`);
    return `const ${list} = ${toList(values)};let ${locals.join(',')};`;
  }

  #if(): string {
    const condition = toCondition(this.#expression());
    this.#expect('then');
    const then = `if (${condition}) {${this.#block()}}`;
    if (this.#accept('elseif')) return `${then} else ${this.#if()}`;
    if (!this.#accept('else')) {
      this.#expect('end');
      return then;
    }
    return `${then} else {${this.#end()}}`;
  }

  #for(): string {
    const names = [this.#name()];
    while (this.#accept(',')) names.push(this.#name());
    if (this.#accept('=')) {
      const [from, to, step] = this.#expressions().map(toOne);
      if (step !== undefined && !/^\d+$/.test(step)) this.#refuse('a step has to be a positive number');
      this.#scopes.push(new Map());
      const name = this.#declare(names[0] ?? '');
      const limit = `limit$${(this.#names += 1)}`;
      const head = `for (let ${name} = R.number(${from}), ${limit} = R.number(${to}); ${name} <= ${limit}; ${name} += ${step ?? 1})`;
      const js = `${head} {${this.#do()}}`;
      this.#scopes.pop();
      return js;
    }
    this.#expect('in');
    const iterated = toOne(this.#expression());
    const list = /^R\.one\(L\$ipairs\((.*)\)\)$/s.exec(iterated)?.[1];
    if (list !== undefined) return this.#forItems(names, list);
    this.#scopes.push(new Map());
    const js = `for (const [${names.map((name) => this.#declare(name)).join(',')}] of ${iterated}) {${this.#do()}}`;
    this.#scopes.pop();
    return js;
  }

  /** `ipairs`, which is called often. */
  #forItems([index = '', item = '']: readonly string[], list: string): string {
    this.#scopes.push(new Map());
    const items = `items$${(this.#names += 1)}`;
    const [i, value] = [this.#declare(index), this.#declare(item)];
    const head = `for (let ${i} = 1, ${items} = R.items(${list}); ${items}[${i} - 1] !== undefined; ${i} += 1)`;
    const js = `${head} {let ${value} = ${items}[${i} - 1];${this.#do()}}`;
    this.#scopes.pop();
    return js;
  }

  #return(): string {
    if ([...ENDS, ';'].some((end) => this.#is(end))) return 'return;';
    const values = this.#expressions();
    const [value] = values;
    return `return ${values.length === 1 && value !== undefined ? value.js : toList(values)};`;
  }

  #assignmentOrCall(): string {
    const targets = [this.#suffixed()];
    if (!this.#is('=') && !this.#is(',')) {
      const [call] = targets;
      if (call?.isMany !== true && call?.isCall !== true) this.#refuse('expected a statement');
      return `${call.js};`;
    }
    while (this.#accept(',')) targets.push(this.#suffixed());
    this.#expect('=');
    const values = this.#expressions();
    const [target] = targets;
    if (targets.length === 1 && values.length === 1 && target !== undefined && values[0] !== undefined) {
      return this.#assign(target, toOne(values[0]));
    }
    const list = `list$${(this.#names += 1)}`;
    return `const ${list} = ${toList(values)};${targets.map((one, index) => this.#assign(one, `${list}[${index}]`)).join('')}`;
  }

  #assign({ js, isMany, isCall }: Code, value: string): string {
    if (isMany === true || isCall === true) this.#refuse('a call cannot be assigned to');
    const index = /^R\.index\((.*)\)$/s.exec(js)?.[1];
    return index === undefined ? `${js} = ${value};` : `R.set(${index},${value});`;
  }

  #expressions(): Code[] {
    const values = [this.#expression()];
    while (this.#accept(',')) values.push(this.#expression());
    return values;
  }

  #expression(power = 0): Code {
    let left = this.#unary();
    for (;;) {
      const { text, kind } = this.#token;
      const [leftPower, rightPower] = (kind === 'string' ? undefined : BINARY[text]) ?? [0, 0];
      if (leftPower <= power) return left;
      this.#at += 1;
      left = this.#binary(text, left, this.#expression(rightPower));
    }
  }

  #binary(operator: string, left: Code, right: Code): Code {
    const [one, other] = [toOne(left), toOne(right)];
    const compare = COMPARISONS[operator];
    if (compare !== undefined) return { js: compare(one, other), isBoolean: true };
    switch (operator) {
      case 'and':
      case 'or': {
        const sign = operator === 'and' ? '&&' : '||';
        const condition = `(${toCondition(left)} ${sign} ${toCondition(right)})`;
        if (left.isBoolean === true) {
          return { js: `(${one} ${sign} ${other})`, condition, isBoolean: right.isBoolean === true };
        }
        const [then, otherwise] = operator === 'and' ? [other, 'T'] : ['T', other];
        return { js: `(${isTrue(one)} ? ${then} : ${otherwise})`, condition };
      }
      case '..':
        return { js: `R.concat(${one}, ${other})` };
      case '%':
        return { js: `R.modulo(R.number(${one}), R.number(${other}))` };
      default:
        return { js: `(R.number(${one}) ${operator} R.number(${other}))` };
    }
  }

  #unary(): Code {
    if (this.#accept('not')) return { js: `!${toCondition(this.#expression(UNARY_POWER))}`, isBoolean: true };
    if (this.#accept('#')) return { js: `R.length(${toOne(this.#expression(UNARY_POWER))})` };
    if (this.#accept('-')) return { js: `(-R.number(${toOne(this.#expression(UNARY_POWER))}))` };
    return this.#simple();
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
    if (this.#is('{')) return this.#table();
    return this.#suffixed();
  }

  #table(): Code {
    this.#expect('{');
    const items: Code[] = [];
    const fields: string[] = [];
    while (!this.#accept('}')) {
      const next = this.#tokens[this.#at + 1];
      if (this.#accept('[')) {
        const key = toOne(this.#expression());
        this.#expect(']');
        this.#expect('=');
        fields.push(`[${key},${toOne(this.#expression())}]`);
      } else if (this.#token.kind === 'name' && next?.text === '=' && next.kind === 'symbol') {
        const key = this.#name();
        this.#expect('=');
        fields.push(`[${JSON.stringify(key)},${toOne(this.#expression())}]`);
      } else items.push(this.#expression());
      if (!this.#accept(',')) this.#accept(';');
    }
    return { js: `R.table(${toList(items)}${fields.length === 0 ? '' : `,[${fields.join(',')}]`})` };
  }

  #suffixed(): Code {
    let code = this.#primary();
    for (;;) {
      if (this.#accept('.')) code = { js: `R.index(${toOne(code)},${JSON.stringify(this.#name())})` };
      else if (this.#accept('[')) {
        code = { js: `R.index(${toOne(code)},${toOne(this.#expression())})` };
        this.#expect(']');
      } else if (this.#accept('(')) {
        const given = this.#arguments();
        // Redis takes a list, and replies with one value.
        const isCommand = /^L\$redis\$p?call$/.test(code.js);
        code = isCommand
          ? { js: `${code.js}([${given}])`, isCall: true }
          : { js: `${code.js}(${given})`, isMany: true };
      } else return code;
    }
  }

  #arguments(): string {
    if (this.#accept(')')) return '';
    const values = this.#expressions();
    this.#expect(')');
    return toItems(values);
  }

  #primary(): Code {
    if (this.#accept('(')) {
      const code = this.#expression();
      this.#expect(')');
      return { ...code, isMany: false, js: `(${toOne(code)})` };
    }
    const name = this.#name();
    const local = this.#resolve(name);
    if (local !== undefined) return { js: local };
    if (!LIBRARIES.has(name)) return { js: this.#fromLibrary(name) };
    this.#expect('.');
    return { js: this.#fromLibrary(`${name}.${this.#name()}`) };
  }

  #fromLibrary(name: string): string {
    const js = `L$${name.replace('.', '$')}`;
    this.#library.set(name, js);
    return js;
  }
}

const LIBRARIES = new Set(['string', 'table', 'math', 'cjson', 'redis']);

function toOne({ js, isMany }: Code): string {
  return isMany === true ? `R.one(${js})` : js;
}

function toCondition(code: Code): string {
  if (code.isBoolean === true) return code.js;
  return code.condition ?? isTrue(toOne(code));
}

function isTrue(js: string): string {
  return `((T = ${js}) !== undefined && T !== false)`;
}

function toItems(values: readonly Code[]): string {
  const last = values.length - 1;
  return values
    .map((value, index) => (index === last && value.isMany === true ? `...R.many(${value.js})` : toOne(value)))
    .join(',');
}

function toList(values: readonly Code[]): string {
  const [only] = values;
  return values.length === 1 && only?.isMany === true ? `R.many(${only.js})` : `[${toItems(values)}]`;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' };

function unquote(text: string): string {
  return text.slice(1, -1).replaceAll(/\\(\d{1,3}|.)/g, (_, escape: string) => {
    return ESCAPES[escape] ?? String.fromCharCode(Number(escape));
  });
}

function toNumber(value: unknown): number {
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

function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberToText(value);
  throw new Error(`attempt to concatenate a ${typeName(value)} value`);
}

const RUNTIME = {
  number: toNumber,
  one: (values: unknown): unknown => (Array.isArray(values) ? values[0] : values),
  many: (values: unknown): readonly unknown[] =>
    Array.isArray(values) ? values : values === undefined ? [] : [values],
  concat: (left: unknown, right: unknown): string => toText(left) + toText(right),
  modulo: (number: number, by: number): number => number - Math.floor(number / by) * by,
  less: (left: unknown, right: unknown): boolean => {
    if (typeof left === 'number' && typeof right === 'number') return left < right;
    if (typeof left === 'string' && typeof right === 'string') return left < right;
    throw new Error(`attempt to compare ${typeName(left)} with ${typeName(right)}`);
  },
  length: (value: unknown): number => {
    if (typeof value === 'string') return value.length;
    if (value instanceof LuaTable) return value.items.length;
    throw new Error(`attempt to get length of a ${typeName(value)} value`);
  },
  items: (table: unknown): readonly unknown[] => {
    if (table instanceof LuaTable) return table.items;
    throw new Error(`bad argument to ipairs: a ${typeName(table)} value`);
  },
  index: (table: unknown, key: unknown): unknown => {
    if (table instanceof LuaTable) return table.get(key);
    throw new Error(`attempt to index a ${typeName(table)} value`);
  },
  set: (table: unknown, key: unknown, value: unknown): void => {
    if (!(table instanceof LuaTable)) throw new Error(`attempt to index a ${typeName(table)} value`);
    table.set(key, value);
  },
  table: (items: unknown[], fields?: readonly (readonly [unknown, unknown])[]): LuaTable => {
    const table = new LuaTable(items);
    if (fields !== undefined) for (const [key, value] of fields) table.set(key, value);
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

  set(key: unknown, value: unknown): void {
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

  #takeNext(): void {
    const { fields, items } = this;
    if (fields === undefined) return;
    for (let key = items.length + 1; fields.has(key); key += 1) {
      items.push(fields.get(key));
      fields.delete(key);
    }
  }

  #trim(): void {
    while (this.items.length > 0 && this.items.at(-1) === undefined) this.items.pop();
  }
}
