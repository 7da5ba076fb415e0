import { spawnSync } from 'node:child_process';
import { expect, it } from '@jest/globals';
import { findBuiltProgram } from '../support/built-program.js';
import { until } from '../support/until.js';
import { type PayoutWorld, untilSettled, worldOfTest } from './support/payout-world.js';
import type { WorkerProcess } from './support/worker-process.js';

/** Spans of two processes: `payouts enqueue` and `payouts worker`, each with a provider of its own. */

interface Span {
  readonly name: string;
  readonly pid: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent?: string;
  readonly isFailed: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
}

const TRACED = { NODE_OPTIONS: `--import ${new URL('support/print-spans.mjs', import.meta.url).href}` };
const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

const spansIn = (text: string) =>
  text.split('\n').flatMap((line) => (line.includes('"spanId"') ? [JSON.parse(line) as Span] : []));

/** In a process that ends before the payout is sent. */
function enqueue({ env }: PayoutWorld, payoutId: string): Span {
  const payment = ['--payment-id', '6', '--amount', '12.5', '--address-to', WALLET];
  const args = [findBuiltProgram(), 'enqueue', '--payout-id', payoutId, ...payment];
  const { stderr, status } = spawnSync(process.execPath, args, {
    env: { PATH: process.env['PATH'], ...env, ...TRACED },
    encoding: 'utf8',
  });
  const [span, ...others] = spansIn(stderr);
  if (status !== 0 || span === undefined || others.length > 0) throw new Error(`it ended with ${status}: ${stderr}`);
  return span;
}

const tracedBy = (worker: WorkerProcess, { traceId }: Span, name: string) =>
  spansIn(worker.log()).filter((span) => span.traceId === traceId && span.name === name);

it('one trace leads over two processes, and each of several polls is linked to it by the send', async () => {
  const world = await worldOfTest({ sandbox: { settleAfterMs: 2_500 } });
  world.sandbox.setFaults([{ kind: 'json-500', endpoint: 'transactionstatus', times: 1 }]);
  const root = enqueue(world, 'traced-1');
  const worker = world.startWorker({ environment: TRACED });
  await untilSettled(world, 1);
  const named = (name: string) => tracedBy(worker, root, name);
  await until('the last poll has ended', () => named('poll payout').some(({ isFailed }) => !isFailed));

  const [send, ...others] = named('send payout');
  expect(others).toEqual([]);
  expect(send).toMatchObject({ pid: worker.pid, parent: root.spanId, isFailed: false });
  expect(root.name).toBe('enqueue payout');
  expect(root.pid).not.toBe(worker.pid);
  const polls = named('poll payout');
  expect(polls.length).toBeGreaterThan(2);
  for (const { parent } of polls) expect(parent).toBe(send?.spanId);
  const ids = polls.map(({ spanId }) => spanId);
  const calls = named('POST /transactionstatus');
  expect(calls.map(({ parent }) => parent).toSorted()).toEqual(ids.toSorted());

  const [failed] = calls;
  expect(failed).toMatchObject({
    isFailed: true,
    attributes: { 'error.type': '500', 'http.response.status_code': 500 },
  });
  for (const { isFailed, attributes } of calls.slice(1)) {
    expect([isFailed, attributes['error.type'], attributes['http.response.status_code']]).toEqual([
      false,
      undefined,
      200,
    ]);
  }
  expect(named('POST /withdraw')[0]?.attributes).toMatchObject({ 'http.response.status_code': 200 });
});

it.each([
  ['drop-after', { 'payouts.outcome': 'unavailable', 'error.type': 'unavailable' }, undefined],
  ['html-502', { 'payouts.outcome': 'unavailable', 'error.type': '502' }, 502],
] as const)('the span of a withdrawal says that it failed: %s', async (kind, attributes, httpStatus) => {
  const world = await worldOfTest();
  world.sandbox.setFaults([{ kind, times: 1 }]);
  const root = enqueue(world, 'failed-1');
  const worker = world.startWorker({ environment: TRACED });
  await untilSettled(world, 1);
  const [call, ...others] = tracedBy(worker, root, 'POST /withdraw');
  expect(others).toEqual([]);
  expect(call).toMatchObject({ isFailed: true, attributes });
  expect(call?.attributes['http.response.status_code']).toBe(httpStatus);
});
