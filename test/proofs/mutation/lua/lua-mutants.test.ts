import { describe, expect, it } from '@jest/globals';
import { makeLuaMutants } from './lua-mutants.js';

const mistakesIn = (source: string): string[] => makeLuaMutants(source).map(({ mistake }) => mistake);

describe('makeLuaMutants', () => {
  it('makes each mistake in a place of its own and leaves everything else as it is', () => {
    const source = ['local a = x + 1', "redis.call('SET', key('k'), a)", 'return a'].join('\n');
    expect(makeLuaMutants(source)).toEqual([
      { line: 1, mistake: '+ → -', source: source.replace('+', '-') },
      { line: 1, mistake: '1 → 2', source: source.replace('1', '2') },
      { line: 2, mistake: "redis.call('SET', key('k'), a) → (left out)", source: 'local a = x + 1\n\nreturn a' },
    ]);
  });

  it('turns comparisons, connectives and negations around', () => {
    expect(mistakesIn('local ok = not a and b == c or d <= e')).toEqual([
      'not → (left out)',
      'and → or',
      '== → ~=',
      'or → and',
      '<= → <',
      '<= → >',
    ]);
  });

  it('meets conditions always and never, also those of several lines, and leaves out early returns', () => {
    expect(mistakesIn('if a\n  ~= b\nthen\n  c = d\nend')).toEqual(['a ~= b → true', 'a ~= b → false', '~= → ==']);
    expect(mistakesIn('if a then return -1 end')).toEqual([
      'a → true',
      'a → false',
      'return -1 → (left out)',
      '-1 → 0',
    ]);
  });

  it('leaves out whole calls, and only those whose value is not looked at', () => {
    expect(mistakesIn("move(p, f(x),\n  'a)')")).toEqual(["move(p, f(x), 'a)') → (left out)"]);
    expect(mistakesIn("local a = redis.call('GET', b)")).toEqual([]);
    expect(mistakesIn('if a then tell(b) else create(c) end')).toContain('create(c) → (left out)');
  });

  it('changes nothing in comments and texts', () => {
    expect(mistakesIn("-- a == 1 and not b\nlocal a = 'x or 1 < 2'")).toEqual([]);
  });
});
