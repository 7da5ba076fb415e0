import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.js';
import { runExample } from './support.js';

const account = { platformId: 4242, secretKey: 'k-example', balance: '12.5' };

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ accounts: [account] });
});
afterAll(async () => sandbox.close());

async function run(secretKey: string): Promise<{ readonly ended: unknown[]; readonly output: string }> {
  return runExample('gateway.ts', { GATEWAY_BASE_URL: sandbox.url, GATEWAY_SECRET_KEY: secretKey }).end();
}

describe('examples/gateway.ts', () => {
  it('shows currencies, balance and a deposit address, and moves no money', async () => {
    const { ended, output } = await run(account.secretKey);
    expect(ended).toEqual([0, null]);
    expect(output).toMatch(/^\{.*\}\n(\{.*\}\n)*balance: .*12\.5.*\ndeposit-17: \{.+\}\n$/);
    expect(output).not.toContain(account.secretKey);
    expect(sandbox.payments()).toEqual([]);
  });

  it('ends with 1 and one sentence if the gateway rejects the key', async () => {
    const { ended, output } = await run('k-wrong');
    expect(ended).toEqual([1, null]);
    expect(output).toMatch(/^.+\n$/);
  });
});
