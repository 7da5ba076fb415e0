import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { openAccountCli, type AccountCli } from './account-cli.js';
import { runInProcess } from './in-process.js';

/** An account of the test's own that also has a gateway. */
export interface GatewayCli extends AccountCli {
  readonly sandbox: Sandbox;
  /** Runs `payouts` with other settings on top. */
  runWith(env: Readonly<Record<string, string>>, ...args: string[]): Promise<CliResult>;
}

export const SECRET_KEY = 'k-cli-0123456789';

export async function openGatewayCli(): Promise<GatewayCli> {
  const account = openAccountCli();
  const platformId = account.ledger.connection.platformId;
  const sandbox = await startSandbox({ accounts: [{ platformId, secretKey: SECRET_KEY, balance: '1000.5' }] });
  const gatewayEnv = { ...account.env, GATEWAY_BASE_URL: sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY };
  const runWith: GatewayCli['runWith'] = async (env, ...args) => runInProcess(args, { ...gatewayEnv, ...env });
  return {
    ...account,
    env: gatewayEnv,
    sandbox,
    runWith,
    run: async (...args) => runWith({}, ...args),
    runProcess: async (...args) => runCli(args, { env: gatewayEnv }),
    close: async () => {
      await account.close();
      await sandbox.close();
    },
  };
}
