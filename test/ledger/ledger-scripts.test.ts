import { expect, it } from '@jest/globals';
import { readSource } from '../../src/base/source-path.cjs';
import { newPlatformId } from '../support/account.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { commandName, SCRIPT_ARGUMENTS, SCRIPT_NAMES } from '../../src/ledger/ledger-scripts.js';
import { openTestAccount } from './support/test-account.js';

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

it('a connection defines a script at its first use, once for all its accounts', async () => {
  const account = openTestAccount();
  try {
    const defined = () => SCRIPT_NAMES.filter((name) => commandName(name) in account.redis);
    const before = defined();
    await account.connection.run('count-payouts', {});
    expect([before, defined()]).toEqual([[], ['count-payouts']]);
    const commands = account.redis as unknown as Record<string, unknown>;
    const command = commands[commandName('count-payouts')];
    await connectLedger(account.redis, newPlatformId()).run('count-payouts', {});
    expect(commands[commandName('count-payouts')]).toBe(command);
  } finally {
    await account.close();
  }
});
