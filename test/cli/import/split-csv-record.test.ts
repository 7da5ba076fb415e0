import { describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { splitCsvRecord } from '../../../src/cli/import/split-csv-record.js';

const PIECES = ['a', '', ' ', ',', '"', '""', '\n', 'Müller', '1.5', '"x"', '"a ""b"""', ' "y" ', '\t'];

/** The same texts in every run. */
function* texts(count: number): Generator<string> {
  let seed = 1;
  const next = (limit: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % limit;
  };
  for (let n = 0; n < count; n += 1) {
    yield Array.from({ length: 1 + next(7) }, () => PIECES[next(PIECES.length)] ?? '').join('');
  }
}

/** What a CSV parser that others rely on makes of it; undefined where it finds a mistake. */
function readByPeer(text: string): string[] | undefined {
  try {
    const records = parse(text, { trim: true, record_delimiter: '\u0000' });
    return records.length === 1 ? records[0] : undefined;
  } catch {
    return undefined;
  }
}

describe('splitCsvRecord', () => {
  it('finds the values that csv-parse finds, wherever it finds any', () => {
    let [same, mistakes] = [0, 0];
    for (const text of texts(20_000)) {
      const split = splitCsvRecord(text);
      if (split.kind !== 'values') mistakes += 1;
      // A blank line has one empty value here, and is no record there; a bare line break never comes out of a line.
      else if (text.trim() !== '' && !/^[^"]*\n/.test(text)) {
        expect({ text, values: split.values }).toEqual({ text, values: readByPeer(text) });
        same += 1;
      }
    }
    expect(Math.min(same, mistakes)).toBeGreaterThan(2_000);
  });

  it('finds the values that csv-stringify wrote', () => {
    const values = [...texts(5_000)].map((text) => text.trim());
    for (let at = 0; at < values.length; at += 5) {
      const record = values.slice(at, at + 5);
      expect(splitCsvRecord(stringify([record]).slice(0, -1))).toEqual({ kind: 'values', values: record });
    }
  });

  it.each([
    ['a,"b', 'open'],
    ['a,"b""', 'open'],
    ['a,"b\n""', 'open'],
    ['a,b"', 'wrong'],
    ['a,12" pipe,c', 'wrong'],
    ['a,"b"c', 'wrong'],
    ['a,"b"', 'values'],
  ])('takes %j for %s', (text, kind) => {
    expect(splitCsvRecord(text)).toMatchObject({ kind });
  });

  it('names the value with the stray quote', () => {
    expect(splitCsvRecord('a,12" pipe')).toMatchObject({ message: expect.stringMatching(/^value 2 contains a quote/) });
  });

  it('takes no longer than the text is long', () => {
    const startedAt = performance.now();
    splitCsvRecord(`"${'""'.repeat(30_000)}`);
    splitCsvRecord(`${' '.repeat(60_000)}x"`);
    splitCsvRecord(`"${'a,'.repeat(30_000)}" b`);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});
