import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { newPlatformId, testRedisUrl } from '../../support/account.js';
import { runCli, startCli, type CliResult, type RunningCli } from '../../support/cli.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { runInProcess } from './in-process.js';

/** An account of the test's own: its ledger, and `payouts` run for it. */
export interface AccountCli {
  readonly ledger: PayoutLedger;
  readonly env: Readonly<Record<string, string>>;
  /** Runs `payouts` in the test's own process. */
  run(...args: string[]): Promise<CliResult>;
  /** Runs `payouts` as operators do, in a process of its own: once for each command. */
  runProcess(...args: string[]): Promise<CliResult>;
  start(...args: string[]): RunningCli;
  /** Enqueues a payout with `payouts enqueue`. */
  enqueue(payoutId: string, ...args: string[]): Promise<CliResult>;
  /** Puts a payout into a state as the worker would leave it. */
  force(payoutId: string, state: string): Promise<void>;
  close(): Promise<void>;
}

export function openAccountCli(): AccountCli {
  const platformId = newPlatformId();
  const redis = connectRedis(testRedisUrl(), 'commands');
  const ledger = new PayoutLedger(connectLedger(redis, platformId));
  const { keys } = ledger.connection;
  const env = { GATEWAY_PLATFORM_ID: String(platformId), PAYOUT_AUDIENCE: TEST_AUDIENCE };
  const run = async (...args: string[]): Promise<CliResult> => runInProcess(args, env);
  return {
    ledger,
    env,
    run,
    runProcess: async (...args) => runCli(args, { env }),
    start: (...args) => startCli(args, { env }),
    enqueue: async (payoutId, ...args) =>
      run(
        'enqueue',
        '--payout-id',
        payoutId,
        '--payment-id',
        '6',
        '--amount',
        '12.5',
        '--address-to',
        'TXYZ9',
        ...args,
      ),
    force: async (payoutId, state) => {
      const score = await redis.zscore(keys.state('queued'), payoutId);
      await redis
        .pipeline()
        .hset(keys.payout(payoutId), { state, h0: `${Date.now()}\t${state}` })
        .zrem(keys.state('queued'), payoutId)
        .zadd(`${keys.prefix}:state:${state}`, score ?? 1, payoutId)
        .exec();
    },
    close: async () => closeRedis(redis),
  };
}
