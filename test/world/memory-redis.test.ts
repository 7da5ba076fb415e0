import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SCRIPT_NAMES } from '../../src/ledger/ledger-scripts.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { LuaTable, compileLua } from './lua-parser.js';
import { fromLua, MemoryRedis } from './memory-redis.js';
import { LUA_LIBRARY, compileScript } from './script-runner.js';

const SEQUENCES = 60;

let account: TestAccount;
beforeAll(() => {
  account = openTestAccount();
});
afterAll(async () => account.close());

const WORDS: Readonly<Record<string, readonly string[]>> = {
  NAME: ['a', 'b', 'c', 'B'],
  NUMBER: ['-1', '0', '1', '2', '3', '10'],
  TEXT: ['x', '7', ''],
  SCORE: ['1', '2', '2', '3', '1893456000000', '(2', '-inf', '+inf'],
  ID: ['1-0', '2-0', '2-1', '3-0', '10-0', '1893456000000-0'],
  BOUND: ['1-0', '2-0', '2-1', '3-0', '10-0', '-', '+', '2', '(2-0', '(1-0'],
  COUNT: ['1', '2', '100'],
  SKIP: ['0', '1'],
  ANY: ['hash', 'zset', 'set', 'stream'],
};

/** Commands; a word in capitals is one of {@link WORDS}, and `a|b` is either. */
const COMMANDS = [
  ...['HGET|HEXISTS hash NAME', 'HMGET hash NAME NAME', 'HGETALL|HKEYS|HLEN hash|hash|zset'],
  ...['HSET hash NAME NUMBER NAME TEXT', 'HSET hash|set NAME', 'HSETNX hash NAME NUMBER', 'HDEL hash NAME NAME'],
  ...[
    'HINCRBY hash NAME NUMBER',
    'SADD|SREM set|set|hash NAME NAME',
    'ZADD zset SCORE NAME',
    'ZADD zset NX SCORE NAME',
  ],
  ...['ZREM zset NAME NAME', 'ZSCORE zset NAME', 'ZCARD zset', 'ZRANGE zset NUMBER NUMBER'],
  ...['ZRANGE zset SCORE SCORE BYSCORE', 'ZRANGE zset SCORE SCORE BYSCORE LIMIT SKIP COUNT WITHSCORES'],
  ...['XADD stream ID NAME NUMBER', 'XADD stream MAXLEN ~ COUNT ID NAME NUMBER', 'XDEL stream ID ID'],
  ...['XRANGE|XREVRANGE stream BOUND BOUND COUNT COUNT', 'EXISTS|DEL ANY'],
];

const command = fc.oneof(
  ...COMMANDS.map((text) =>
    fc.tuple(
      ...text.split(' ').map((word, index, all) => {
        // The option COUNT of XRANGE is followed by a count.
        const isOption = word === 'COUNT' && all[index + 1] === 'COUNT';
        return fc.constantFrom(...((isOption ? undefined : WORDS[word]) ?? word.split('|')));
      }),
    ),
  ),
);

/** A hash and a set have no order; a newer protocol has pairs. */
function inOrder([verb]: readonly string[], reply: unknown): unknown {
  if (!Array.isArray(reply)) return reply;
  if (verb === 'ZRANGE') return reply.flat();
  const texts = reply as string[];
  if (verb === 'HKEYS') return [...texts].sort();
  if (verb !== 'HGETALL') return reply;
  return Object.fromEntries(texts.map((field, index) => [index % 2 === 0 ? field : '', texts[index + 1]]));
}

async function replyOf(words: readonly string[], call: () => unknown): Promise<unknown> {
  try {
    return inOrder(words, await call());
  } catch (error) {
    return (error as Error).message.split(' ')[0];
  }
}

describe('a Redis in memory', () => {
  it('replies as a real one, whatever was written before', async () => {
    const { redis, connection } = account;
    const keyOf = (key: string) => `${connection.keys.prefix}:${key}`;
    const property = fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 40 }), async (commands) => {
      await redis.del(...['hash', 'zset', 'set', 'stream'].map(keyOf));
      const memory = new MemoryRedis(() => 0);
      for (const words of commands) {
        const [verb = '', key = '', ...args] = words;
        const expected = await replyOf(words, async () => redis.call(verb, keyOf(key), ...args));
        expect([words, await replyOf(words, () => memory.call(verb, [keyOf(key), ...args]))]).toEqual([
          words,
          expected,
        ]);
      }
    });
    await fc.assert(property, { numRuns: SEQUENCES });
  }, 60_000);

  it('comes back as it was when a snapshot was taken, as often as wanted', () => {
    const memory = new MemoryRedis(() => 5);
    memory.call('HSET', ['hash', 'a', '1']);
    memory.call('XADD', ['stream', '*', 'a', '1']);
    const before = memory.dump();
    const snapshot = memory.snapshot();
    for (let time = 0; time < 2; time += 1) {
      memory.call('HSET', ['hash', 'a', '2', 'b', '3']);
      memory.call('HSET', ['other', 'a', '1']);
      expect(memory.call('XADD', ['stream', '*', 'a', '2'])).toBe(`5-${time + 1}`);
      memory.restore(snapshot);
      expect(memory.dump()).toEqual(before);
    }
  });
});

const SNIPPETS: readonly string[] = [
  "return { 1.9, -1.9, 'x', true, false, 5 }",
  'return { 1, nil, 3 }',
  "return 10 / 5 .. ' ' .. 1893456000000 .. '\\t' .. -3",
  "return redis.call('HGET', 'missing', 'a') or 'none'",
  "local a, b, c = unpack({ 1, 2 }) return { a, b, c == nil and 'nil' or c }",
  "local t = {} t[2] = 'b' t[1] = 'a' t[#t + 1] = 'c' return t",
  "local t = { 'a', 'b', x = 1 } local n = 0 for i, word in ipairs(t) do n = n + i end return { n, #t, t.x }",
  "local r = {} for w in string.gmatch('a bb  c', '%S+') do r[#r + 1] = w end return r",
  "local r = {} for w in string.gmatch('a/b/c', '[^/]+') do r[#r + 1] = w end return r",
  "return { string.match('qabc12\\tann\\twhy', '^(%l)(%w+)(.*)$') }",
  "return { string.match('12\\tb\\tc\\td e', '^([^\\t]*)\\t([^\\t]*)\\t([^\\t]*)\\t(.*)$') }",
  "return { string.sub('abcdef', 2, 4), string.sub('abcdef', -3), string.sub('abc', 5), string.sub('abcdef', 1, -3) }",
  "return { tonumber('12'), tonumber('zz', 36), tonumber('x') or 'nil', tonumber('1.5e3'), tonumber('-Infinity') < 0 }",
  "return { string.format('%.0f', 1893456000000), string.format('%.0f-0', 12) }",
  'return { 7 % 3, -7 % 3, 2 + 3 * 4 - 6 / 2, (2 + 3) * 4, math.floor(-1.5), math.max(1, 3, 2), math.min(4, 2), math.abs(-3) }',
  "return { 'b' > 'a', 1 <= 1, not nil, not 0, '10' == 10, 1 ~= 2, #'abc' }",
  'local x repeat local y = (x or 0) + 1 x = y until y >= 3 return x',
  'local x = 0 while x < 4 do x = x + 3 end return x',
  "local function f(n) if n == 0 then return 'end' end return f(n - 1) end return f(3)",
  "local function f() error('bad') end local ok, why = pcall(f) return { ok and 1 or 0, type(why) }",
  'local t = cjson.decode(\'{"a":[1,2,{"b":"x"}],"c":null}\') return { t.a[3].b, t.a[2], t.c == nil and \'nil\' or \'null\', type(t) }',
  "return redis.sha1hex('abc')",
  "return table.concat({ 1, 'b', 2 }, '-')",
  'local a, b = 1, 2 a, b = b, a return { a, b }',
  "return { nil and 1 or 2, false or nil or 3, 0 and 4, '' or 5, 1 and nil == nil }",
  "for i = 3, 1 do return i end local s = '' for i = 1, 7, 3 do s = s .. i end return s",
];

describe('compiled Lua', () => {
  it.each(SNIPPETS)('does what Redis does: %s', async (snippet) => {
    const library = { ...LUA_LIBRARY, 'redis.call': () => false };
    const result = compileLua(snippet, 'snippet', library)(new LuaTable(), new LuaTable());
    const reply = fromLua(Array.isArray(result) ? result[0] : result);
    expect(reply).toEqual(await account.redis.eval(snippet, 0));
  });

  it.each(['goto x', 'x = setmetatable', 'x = 1 +', 'return [[long]]', 'for i = 3, 1, -1 do end', 'return 1.5 .. 1'])(
    'refuses what it does not know: %s',
    (snippet) => {
      expect(() => compileLua(`${snippet}\nreturn t(1)`, 'snippet', {})(new LuaTable(), new LuaTable())).toThrow();
    },
  );

  it('knows all that the scripts of the ledger use', () => {
    for (const name of SCRIPT_NAMES) compileScript(name);
  });
});
