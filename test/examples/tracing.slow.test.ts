import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { findBuiltProgram } from '../support/built-program.js';
import { SECRET_KEY, worldOfTest } from '../worker/support/payout-world.js';

interface PrintedSpan {
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** What its attributes must not have: the recipient, the amount, the secret. */
const HIDDEN = ['TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', '12.5', SECRET_KEY];

async function runExample(): Promise<{ spans: PrintedSpan[]; logged: Record<string, unknown>[] }> {
  findBuiltProgram();
  const { sandbox, env, dir } = await worldOfTest();
  const file = fileURLToPath(new URL('../../examples/tracing.ts', import.meta.url));
  const access = { GATEWAY_BASE_URL: sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY, SEND_JOURNAL_DIR: join(dir, 'j') };
  const child = spawn(process.execPath, ['--import', 'tsx', file], { env: { ...process.env, ...env, ...access } });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => (stdout += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (stderr += part));
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`it ended with ${code}: ${stderr}`);
  const parse = <Line>(text: string) =>
    text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Line] : []));
  const lines = parse<PrintedSpan & Record<string, unknown>>(`${stdout}\n${stderr}`);
  return { spans: lines.filter(({ spanId }) => spanId), logged: lines.filter(({ spanId }) => !spanId) };
}

it('one trace leads from a request in a shop to the end of the payout, and has no payment in it', async () => {
  const { spans, logged } = await runExample();
  const root = spans.find(({ name }) => name === 'POST /withdrawals');
  if (root === undefined) throw new Error('no span of the request');
  const own = spans.filter(({ traceId }) => traceId === root.traceId);
  const parentOf = (name: string) => {
    const span = own.find((each) => each.name === name);
    return [span?.kind, own.find(({ spanId }) => spanId === span?.parent)?.name];
  };
  expect(parentOf('enqueue payout')).toEqual(['PRODUCER', 'POST /withdrawals']);
  expect(parentOf('send payout')).toEqual(['CONSUMER', 'enqueue payout']);
  for (const name of ['begin', 'journal sync', 'wait for the slot', 'record'])
    expect([name, ...parentOf(name)]).toEqual([name, 'INTERNAL', 'send payout']);
  expect(parentOf('POST /withdraw')).toEqual(['CLIENT', 'send payout']);
  expect(parentOf('poll payout')).toEqual(['CONSUMER', 'send payout']);
  expect(parentOf('POST /transactionstatus')).toEqual(['CLIENT', 'poll payout']);
  // Nothing else begins a trace of its own.
  const ids = own.map(({ spanId }) => spanId);
  expect(spans.filter(({ parent }) => parent === undefined).map(({ name }) => name)).toEqual(['POST /withdrawals']);
  expect(own.filter(({ parent }) => parent !== undefined && !ids.includes(parent))).toEqual([]);

  const call = own.find(({ name }) => name === 'POST /withdraw')?.attributes;
  expect(call).toMatchObject({ 'http.request.method': 'POST', 'server.address': '127.0.0.1' });
  expect(call).toMatchObject({ 'url.full': expect.stringMatching(/\/withdraw$/), 'payouts.outcome': 'answered' });
  const send = own.find(({ name }) => name === 'send payout')?.attributes;
  expect(send).toMatchObject({ 'bullmq.queue.name': 'withdraw', 'payouts.payout_id': 'traced-1' });
  const text = JSON.stringify(spans.map(({ name, attributes }) => ({ name, attributes })));
  for (const hidden of HIDDEN) expect(text).not.toContain(hidden);
  const line = logged.find(({ msg }) => msg === 'withdraw sent');
  expect(line).toMatchObject({
    trace_id: root.traceId,
    span_id: own.find(({ name }) => name === 'send payout')?.spanId,
  });
});
