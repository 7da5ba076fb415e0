import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { toExitCode } from '../../src/cli/context/exit-code.js';
import * as index from '../../src/index.js';

const rows = [
  ...readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8').matchAll(
    /^\| `(\w+)` +\| `(\w+)` +\| (\d) /gm,
  ),
].map(([, name = '', code = '', exitCode = '']) => ({ name, code, exitCode: Number(exitCode) }));

const classes: Record<string, unknown> = { ...index };

function isErrorClass(value: unknown): boolean {
  return typeof value === 'function' && value.prototype instanceof index.PayoutError;
}

it('docs/errors.md lists every error class that is exported', () => {
  const exported = Object.keys(classes).filter((name) => isErrorClass(classes[name]));
  expect(rows.map(({ name }) => name).sort()).toEqual(exported.sort());
});

const sources = ['../../src/base/errors.ts', '../../src/gateway/gateway.ts']
  .map((path) => readFileSync(new URL(path, import.meta.url), 'utf8'))
  .join('\n');

/** The code of a class, or of the class that it extends. */
function codeOf(name: string): string | undefined {
  const [, parent = '', body = ''] = new RegExp(`class ${name} extends (\\w+) \\{(.*?)^\\}`, 'ms').exec(sources) ?? [];
  return parent === 'PayoutError' ? /super\('(\w+)'/.exec(body)?.[1] : codeOf(parent);
}

it.each(rows)('$name has the code $code and ends a command with $exitCode', ({ name, code, exitCode }) => {
  expect(codeOf(name)).toBe(code);
  expect(toExitCode(new index.PayoutError(code as index.ErrorCode, ''))).toBe(exitCode);
});
