import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { readConfig, VARIABLE_NAMES } from '../../src/config.js';

const docs = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
const values = Object.fromEntries(
  example.split('\n').flatMap((line) => (/^[A-Z]/.test(line) ? [line.split(/=(.*)/s).slice(0, 2)] : [])),
) as Record<string, string>;

describe.each(VARIABLE_NAMES)('%s', (name) => {
  it('is explained in docs/configuration.md and stands in .env.example', () => {
    expect(docs).toContain(`\`${name}\``);
    expect(Object.keys(values)).toContain(name);
  });

  it('has in .env.example the default that the code has', () => {
    const value = values[name] ?? '';
    if (value === '') return;
    const withDefault = readConfigOrUndefined(name, {});
    if (withDefault !== undefined) expect(readConfigOrUndefined(name, { [name]: value })).toEqual(withDefault);
  });
});

it('.env.example names no variable that does not exist', () => {
  const known = VARIABLE_NAMES.flatMap((name) => [name, `${name}_FILE`]);
  expect(Object.keys(values).filter((name) => !known.includes(name as never))).toEqual([]);
});

function readConfigOrUndefined(name: (typeof VARIABLE_NAMES)[number], environment: Record<string, string>): unknown {
  try {
    return readConfig([name], environment)[name];
  } catch {
    return undefined;
  }
}
