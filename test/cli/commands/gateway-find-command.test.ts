import { expect, it } from '@jest/globals';
import { openGateway } from '../../../src/gateway/open-gateway.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { orderIdOf, readAttempts } from '../../../src/ledger/order-id.js';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import type { SandboxOptions } from '../../../src/sandbox/index.js';
import { runCli } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { afterTest } from '../../worker/support/close-after-test.js';
import { openWorkerIn, SECRET_KEY, worldOfTest } from '../../worker/support/payout-world.js';

const NO_EVIDENCE = 'That is no evidence that nothing was paid';

/** A payout that became unknown over the second generation of the API, whose worker has ended. */
async function becameUnknown(kind: 'drop-after' | 'drop-before', v2: SandboxOptions['v2'] = {}) {
  const world = await worldOfTest({ sandbox: { v2, faults: [{ kind, times: 1 }] } });
  const { platformId, sandbox, producer, redisUrl } = world;
  const [payoutId = ''] = await world.enqueue(1);
  const worker = await openWorkerIn(world, {}, { api: 'v2' });
  const stateOf = async () => (await producer.get(payoutId))?.state;
  await until('it is unknown', async () => (await stateOf()) === 'unknown');
  const env = { ...world.env, GATEWAY_BASE_URL: sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY, GATEWAY_API: 'v2' };
  const run = async (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    runCli(args, { env: { ...env, ...more } });
  const redis = connectRedis(redisUrl, 'commands');
  afterTest(async () => closeRedis(redis));
  const attempts = await readAttempts(connectLedger(redis, platformId), payoutId);
  const orderIds = attempts.map((each) => ({ attempt: each.attempt, orderId: orderIdOf(each) }));
  const find = async (...args: readonly string[]) => run(['gateway', 'find', payoutId, ...args]);
  return { ...world, worker, payoutId, run, find, stateOf, orderIds };
}

it('finds the payment of an unknown payout, and prints the command that follows it to its end', async () => {
  const { sandbox, payoutId, run, find, stateOf, orderIds } = await becameUnknown('drop-after');
  const [payment] = sandbox.payments();
  expect(orderIds).toEqual([{ attempt: 1, orderId: payment?.orderId }]);
  const { code, stdout } = await find();
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`gateway id ${payment?.gatewayId}`) });
  expect(stdout).not.toContain(NO_EVIDENCE);
  // It changes nothing by itself.
  expect(await stateOf()).toBe('unknown');
  const [, command = ''] = /^ +payouts (resolve .*)$/m.exec(stdout) ?? [];
  const args = command.replace(/'(.*)'/, 'found').split(' ');
  expect((await run(args)).code).toBe(0);
  await until('it is completed', async () => (await stateOf()) === 'completed');
  expect(sandbox.payments()).toHaveLength(1);
  expect(command).toContain(payoutId);
});

it.each<SandboxOptions['v2']>([{}, { orderIds: 'ignored' }, { orderIdKnownAfterMs: 600_000 }])(
  'says that an order id which is not known is no evidence, and changes nothing: %j',
  async (v2) => {
    const { find, stateOf } = await becameUnknown(
      v2?.orderIds === undefined && !v2?.orderIdKnownAfterMs ? 'drop-before' : 'drop-after',
      v2,
    );
    const { code, stdout } = await find();
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(NO_EVIDENCE) });
    expect(stdout).toContain('withdrawal not found');
    expect(stdout).not.toMatch(/resolve|not-sent/);
    expect(await stateOf()).toBe('unknown');
  },
);

it('shows a payment of this order id that is another, and offers no command for it', async () => {
  const { sandbox, platformId, worker, find, orderIds } = await becameUnknown('drop-before');
  await worker.stop();
  const gateway = openGateway({ api: 'v2', baseUrl: sandbox.url, platformId, secretKey: SECRET_KEY });
  const connection = await gateway.openConnection(new AbortController().signal);
  const request = { paymentId: 6, amount: '700', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
  await connection.withdraw(request, { mayWrite: () => true, orderId: orderIds[0]?.orderId ?? '' });
  gateway.close();
  const { code, stdout } = await find();
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/another payment .*amount is 700 at the gateway/),
  });
  expect(stdout).not.toContain('payouts resolve');
  const [line] = (await find('--json')).stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text) as object);
  expect(line).toMatchObject({
    attempt: 1,
    kind: 'found',
    differences: expect.arrayContaining([expect.objectContaining({ field: 'amount' })]),
  });
});

it('ends with 1 if the gateway gives no answer, and with 3 if it has no order ids or there is no such payout', async () => {
  const { sandbox, payoutId, run, find } = await becameUnknown('drop-after');
  expect(await run(['gateway', 'find', payoutId], { GATEWAY_API: 'v1' })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('no order ids'),
  });
  expect(await run(['gateway', 'find', 'nobody'])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('no payout "nobody"'),
  });
  sandbox.setFaults([{ kind: 'html-502', endpoint: 'transactionstatus' }]);
  const { code, stdout } = await find();
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining(NO_EVIDENCE) });
});
