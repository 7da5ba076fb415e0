type LuaMutant = Readonly<{ line: number; mistake: string; source: string }>;

type Edit = Readonly<{ start: number; end: number; replacement: string }>;

type Operator = (code: string) => Edit[];

/** The scripts are short and in one style: a mistake in the text that is no Lua any more fails at once. */
export function makeLuaMutants(source: string): LuaMutant[] {
  const code = blankOut(source);
  const edits = OPERATORS.flatMap((operator) => operator(code));
  return edits
    .sort((one, other) => one.start - other.start)
    .map(({ start, end, replacement }) => ({
      line: source.slice(0, start).split('\n').length,
      mistake: `${oneLine(source.slice(start, end))} → ${oneLine(replacement) || '(left out)'}`,
      source: source.slice(0, start) + replacement + source.slice(end),
    }));
}

function blankOut(source: string) {
  const blank = (text: string) => ' '.repeat(text.length);
  return source.replace(/--[^\n]*|'([^'\n]*)'/g, (whole: string, quoted?: string) =>
    quoted === undefined ? blank(whole) : `'${blank(quoted)}'`,
  );
}

const oneLine = (text: string) => text.trim().replace(/\s+/g, ' ');

function swap(pattern: RegExp, alternatives: Readonly<Record<string, readonly string[]>>): Operator {
  return (code) =>
    [...code.matchAll(pattern)].flatMap(({ 0: found, index }) =>
      (alternatives[found] ?? []).map((replacement) => ({ start: index, end: index + found.length, replacement })),
    );
}

const comparisons = swap(/==|~=|<=|>=|<|>/g, {
  '==': ['~='],
  '~=': ['=='],
  '<=': ['<', '>'],
  '>=': ['>', '<'],
  '<': ['<=', '>='],
  '>': ['>=', '<='],
});

const connectives = swap(/\b(and|or)\b/g, { and: ['or'], or: ['and'] });

const signs = swap(/(?<=[\w)\]] )[+-](?= )/g, { '+': ['-'], '-': ['+'] });

const replace = (pattern: RegExp, make: (found: string) => string) => (code: string) =>
  [...code.matchAll(pattern)].map(({ 0: found, index }) => ({
    ...{ start: index, end: index + found.length, replacement: make(found) },
  }));

const negations = replace(/\bnot /g, () => '');
const numbers = replace(/(?<![\w.])-?\d+(?![\w.])/g, (found) => String(Number(found) + 1));
const returns = replace(/(?<=\bthen )return .+?(?= end$)/gm, () => '');

const conditions: Operator = (code) =>
  [...code.matchAll(/\bif\b((?:(?!\bthen\b)[\s\S])+)\bthen\b/g)].flatMap(({ 0: found, 1: condition = '', index }) => {
    const start = index + found.indexOf(condition);
    return ['true', 'false'].map((value) => ({ start, end: start + condition.length, replacement: ` ${value} ` }));
  });

/** Calls that are statements of their own: what they return is not looked at, so they are there for what they change. */
const WRITES =
  /(?<=^ *|\bthen |\belse )(redis\.p?call|move|create|complete|fill_in|follow|append_event|publish|publish_pending|claim_gateway_id|clear_unanswered|note_late_payment|error)\(/gm;
const writes: Operator = (code) =>
  [...code.matchAll(WRITES)].map(({ 0: found, index }) => ({
    ...{ start: index, end: endOfCall(code, index + found.length), replacement: '' },
  }));

const OPERATORS = [comparisons, connectives, signs, negations, numbers, conditions, writes, returns];

function endOfCall(code: string, from: number) {
  let depth = 1;
  let place = from;
  for (; depth > 0 && place < code.length; place += 1) {
    if (code[place] === '(') depth += 1;
    if (code[place] === ')') depth -= 1;
  }
  return place;
}
