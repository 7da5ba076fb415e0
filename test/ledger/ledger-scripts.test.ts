import { expect, it } from '@jest/globals';
import { readSource } from '../../src/base/source-path.cjs';
import { SCRIPT_ARGUMENTS, SCRIPT_NAMES } from '../../src/ledger/ledger-scripts.js';

function headerArguments(name: string): string {
  const comments = /^(?:--.*\n)+/.exec(readSource(`ledger/lua/${name}.lua`))?.[0] ?? '';
  const [, text = ''] = /^-- ARGV: ([^]*?)(?=\n-- [A-Z]\w+: |\n-- Returns a list:|\n$)/m.exec(comments) ?? [];
  return text.replace(/\n--\s*/g, ' ');
}

it.each(SCRIPT_NAMES)('the header of %s explains its arguments in the order in which they are given', (name) => {
  const header = headerArguments(name);
  let from = 0;
  for (const argument of SCRIPT_ARGUMENTS[name].split(' ')) {
    const at = header.slice(from).search(new RegExp(`\\b${argument}\\b`));
    expect([argument, header.slice(from)]).toEqual([argument, at < 0 ? 'a text that names it' : header.slice(from)]);
    from += at + argument.length;
  }
});
