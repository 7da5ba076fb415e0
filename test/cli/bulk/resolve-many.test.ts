import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { createGatewayClient } from '../../../src/gateway/gateway-client.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { silentLogger } from '../../../src/base/logger.js';
import { begin, NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { openGatewayCli, SECRET_KEY, type GatewayCli } from '../support/gateway-cli.js';

let account: GatewayCli;
let dir: string;

beforeEach(async () => {
  account = await openGatewayCli();
  dir = await mkdtemp(join(tmpdir(), 'resolve-'));
});

afterEach(async () => {
  await account.close();
  await rm(dir, { recursive: true });
});

const WHY = ['--reason', 'ticket 812', '--by', 'ann'];

async function makeUnknown(count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, index) => ({
    payoutId: `p-${index + 1}`,
    paymentId: index === 1 ? 7 : 6,
    amount: '12.5',
    addressTo: 'TXYZ9',
  }));
  const file = await write('payouts.jsonl', rows.map((row) => JSON.stringify(row)).join('\n'));
  expect(await account.run('import', file, '--yes')).toMatchObject({ code: 0 });
  const { redis, keys } = account.ledger.connection;
  for (const { payoutId } of rows) await account.force(payoutId, 'unknown');
  await redis.del(keys.outbox);
}

async function write(name: string, text: string): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, text);
  return path;
}

async function states(): Promise<Record<string, string | undefined>> {
  const ids = ['p-1', 'p-2', 'p-3'];
  const payouts = await Promise.all(ids.map(async (id) => account.ledger.get(id)));
  return Object.fromEntries(ids.map((id, index) => [id, payouts[index]?.state]));
}

/** Pays at the sandbox what a worker would have paid. @returns the txhash */
async function pay(): Promise<string> {
  const client = createGatewayClient({
    baseUrl: account.sandbox.url,
    platformId: account.ledger.connection.platformId,
    secretKey: SECRET_KEY,
    clock: systemClock,
    logger: silentLogger,
  });
  const outcome = await client.withdraw({ paymentId: 6, amount: '12.5', addressTo: 'TXYZ9' });
  client.close();
  if (outcome.kind !== 'accepted') throw new Error(`The sandbox did not pay: ${JSON.stringify(outcome)}`);
  return outcome.txhash;
}

describe('payouts resolve --state unknown', () => {
  it('counts and adds up by currency, and changes nothing in a dry run', async () => {
    await makeUnknown(3);
    const { code, stdout } = await account.run('resolve', '--state', 'unknown', '--write-off', '--dry-run', ...WHY);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^3 payouts unknown\n/);
    expect(stdout).toMatch(/6 +2 +25\n/);
    expect(stdout).toMatch(/7 +1 +12\.5\n/);
    expect(stdout).toMatch(/Dry run: nothing was changed\.\n$/);
    expect(await states()).toEqual({ 'p-1': 'unknown', 'p-2': 'unknown', 'p-3': 'unknown' });
  });

  it('wants --yes where nobody can be asked, before it counts', async () => {
    await makeUnknown(1);
    const refused = await account.run('resolve', '--state', 'unknown', '--write-off', ...WHY);
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/--yes: is required/) });
    expect((await account.ledger.get('p-1'))?.state).toBe('unknown');
  });

  it('refuses --not-sent, also in a dry run, and says what to do', async () => {
    await makeUnknown(3);
    for (const more of [['--yes'], ['--dry-run'], ['--expect-count', '3']]) {
      const result = await account.run('resolve', '--state', 'unknown', '--not-sent', ...more, ...WHY);
      expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/needs --file: .*--csv >/) });
    }
    expect(await states()).toEqual({ 'p-1': 'unknown', 'p-2': 'unknown', 'p-3': 'unknown' });
  });

  /** The block of the page as it was: its first command fails with exit code 2, and whoever pastes it goes on. */
  it('queues nothing where a pasted block goes on after a command that failed', async () => {
    await makeUnknown(3);
    const paid = await write('unknown.csv', `payout_id,txhash\np-1,${await pay()}\np-2,h-2\np-3,\n`);
    const file = ['--file', paid];
    expect(await account.run('resolve', ...file, '--sent', '--yes', ...WHY)).toMatchObject({ code: 2 });
    expect(await account.run('resolve', '--state', 'unknown', '--not-sent', '--yes', ...WHY)).toMatchObject({
      code: 2,
    });
    expect(await account.run('resolve', ...file, '--not-sent', '--yes', ...WHY)).toMatchObject({ code: 2 });
    expect(await states()).toEqual({ 'p-1': 'unknown', 'p-2': 'unknown', 'p-3': 'unknown' });
  });
});

describe('payouts resolve --file --not-sent', () => {
  const notSent = async (): Promise<string[]> => {
    const file = await write('unpaid.csv', 'payout_id\np-1\np-2\np-3\n');
    return ['resolve', '--file', file, '--not-sent'];
  };

  it('changes nothing without the number of payouts, or with another one', async () => {
    await makeUnknown(3);
    const wrong: readonly [args: string[], message: RegExp][] = [
      [[], /--expect-count: is required: there is no terminal/],
      [['--yes'], /--yes does not answer .*--expect-count N/],
      [['--expect-count', '4'], /--expect-count: must be the number of payouts .*, 3 \(got 4\)/],
      [['--expect-count', '2'], /--expect-count: must be the number of payouts .*, 3 \(got 2\)/],
      [['--expect-count', '3x'], /must be a number of payouts/],
    ];
    for (const [args, message] of wrong) {
      const result = await account.run(...(await notSent()), ...args, ...WHY);
      expect(result).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
    }
    expect(await states()).toEqual({ 'p-1': 'unknown', 'p-2': 'unknown', 'p-3': 'unknown' });
  });

  it('refuses a row that names a transaction', async () => {
    await makeUnknown(3);
    const file = await write('unknown.csv', 'payout_id,txhash\np-1,h-1\np-2,\n');
    const refused = await account.run('resolve', '--file', file, '--not-sent', '--expect-count', '2', ...WHY);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/line 2: txhash: must be empty/) });
    expect(await states()).toEqual({ 'p-1': 'unknown', 'p-2': 'unknown', 'p-3': 'unknown' });
  });

  it('queues each of them again, with a job of its own and who and why', async () => {
    await makeUnknown(3);
    const result = await account.runProcess(...(await notSent()), '--expect-count', '3', ...WHY);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringMatching(/3 payouts queued again\.\n$/) });
    expect(await states()).toEqual({ 'p-1': 'queued', 'p-2': 'queued', 'p-3': 'queued' });
    const { redis, keys } = account.ledger.connection;
    const jobs = await redis.lrange(`${keys.prefix}:withdraw:wait`, 0, -1);
    expect(jobs).toEqual(expect.arrayContaining(['p-1~1', 'p-2~1', 'p-3~1']));
    expect((await account.ledger.get('p-3'))?.history.at(-1)).toMatchObject({ by: 'ann', reason: 'ticket 812' });
    const again = await account.run(...(await notSent()), '--expect-count', '3', '--json', ...WHY);
    expect(JSON.parse(again.stdout)).toMatchObject({ payouts: 0, changed: 0, refused: 0 });
  });

  it('leaves a payout whose request may still be on its way, and resolves the others', async () => {
    await makeUnknown(3);
    const { redis, keys } = account.ledger.connection;
    await redis.hset(keys.payout('p-2'), 'doubtUntil', Date.now() + 60_000);
    const result = await account.run(...(await notSent()), '--expect-count', '3', ...WHY);
    expect(result).toMatchObject({ code: 4, stdout: expect.stringMatching(/2 payouts queued again/) });
    expect(result.stderr).toMatch(/request of payout p-2 may still be on its way to the gateway for \d+ s/);
    expect(await states()).toEqual({ 'p-1': 'queued', 'p-2': 'unknown', 'p-3': 'queued' });
  });
});

describe('payouts resolve --file', () => {
  it('takes what `payouts list --csv` writes, leaves what is not unknown any more, and continues where it stopped', async () => {
    await makeUnknown(3);
    const { stdout: csv } = await account.run('list', '--state', 'unknown', '--csv');
    const file = await write('unknown.csv', csv);
    expect(await account.run('resolve', 'p-2', '--write-off', ...WHY)).toMatchObject({ code: 0 });
    const result = await account.run('resolve', '--file', file, '--write-off', '--yes', '--json', ...WHY);
    expect(result).toMatchObject({ code: 0, stderr: expect.stringMatching(/2 payouts unknown, 1 cancelled left/) });
    expect(JSON.parse(result.stdout)).toMatchObject({ payouts: 2, others: { cancelled: 1 }, changed: 2, refused: 0 });
    expect(await states()).toEqual({ 'p-1': 'cancelled', 'p-2': 'cancelled', 'p-3': 'cancelled' });
  });

  it('refuses a file that names a payout twice in two ways, one that is not there, or columns that it does not know', async () => {
    await makeUnknown(1);
    const wrong: readonly [text: string, message: RegExp][] = [
      ['payout_id,txhash\np-1,h-1\np-1,h-2\n', /line 3: payout_id: is already on line 2, with another txhash/],
      ['payout_id,txhash\np-1,h-1\np-2,h-1\n', /line 3: txhash: is already on line 2, for payout p-1/],
      [
        `payout_id,txhash\np-1,0x${'ab'.repeat(32)}\np-2,${'AB'.repeat(32)}\n`,
        /line 3: txhash: is already on line 2, for payout p-1/,
      ],
      ['payout_id,txhash\np-1,\n', /line 2: txhash: /],
      ['payout_id,txhash\np-1,h-1\np-9,h-9\n', /line 3: payout p-9 not found/],
      ['payout_id,txhash,notes\np-1,h-1,hello\n', /line 1: "notes": is not a known column/],
      ['txhash\nh-1\n', /line 1: payout_id: is missing/],
      ['payout_id\n', /names no payout/],
    ];
    for (const [text, message] of wrong) {
      const file = await write('wrong.csv', text);
      const args = ['resolve', '--file', file, '--sent', '--force', '--yes', ...WHY];
      expect(await account.run(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
    }
    expect((await account.ledger.get('p-1'))?.state).toBe('unknown');
  });

  it('--sent follows each transaction that the gateway confirms, and leaves the others', async () => {
    await makeUnknown(3);
    const lines = [`{"payoutId":"p-1","txhash":"${await pay()}"}`, `{"payoutId":"p-3","txhash":"h-9"}`];
    const file = await write('sent.jsonl', `${lines.join('\n')}\n`);
    const result = await account.run('resolve', '--file', file, '--sent', '--yes', ...WHY);
    expect(result).toMatchObject({ code: 4, stdout: expect.stringMatching(/1 payout in progress/) });
    expect(result.stderr).toMatch(/no status for transaction h-9/);
    expect(await states()).toEqual({ 'p-1': 'in_progress', 'p-2': 'unknown', 'p-3': 'unknown' });
  });

  it('stops at the first sign that the gateway is unavailable, and says how far it came', async () => {
    await makeUnknown(3);
    const file = await write('sent.csv', 'payout_id,txhash\np-1,h-1\np-2,h-2\n');
    const unreachable = { GATEWAY_BASE_URL: 'http://127.0.0.1:1' };
    const result = await account.runWith(unreachable, 'resolve', '--file', file, '--sent', '--yes', ...WHY);
    expect(result).toMatchObject({ code: 1 });
    expect(result.stderr).toMatch(/0 of 2 payouts done; run the same command again to continue/);
  });

  it('leaves a payout that it has queued again and that was sent since: nobody has decided about that', async () => {
    await makeUnknown(2);
    const file = await write('unknown.csv', 'payout_id\np-1\np-2\n');
    const command = ['resolve', '--file', file, '--not-sent', '--expect-count', '1', ...WHY];
    // A first run came as far as p-1.
    expect(await account.run('resolve', 'p-1', '--not-sent', '--yes', ...WHY)).toMatchObject({ code: 0 });
    const sender = new RedisSenderLedger(account.ledger.connection, 'reply');
    const attempt = await begin(sender, await takeLease(sender, 'one'), 'p-1');
    await sender.finishSend(attempt, { kind: 'unknown', reason: 'no response in time' }, NO_BREAKER, 0);
    const again = await account.run(...command);
    expect(again).toMatchObject({ code: 0, stdout: expect.stringMatching(/1 payout queued again/) });
    expect(await states()).toMatchObject({ 'p-1': 'unknown', 'p-2': 'queued' });
  });

  it('wants one way to name payouts', async () => {
    const wrong = [
      ['--not-sent', ...WHY],
      ['--state', 'unknown', '--file', 'f.csv', '--not-sent', ...WHY],
      ['--state', 'unknown', '--sent', ...WHY],
      ['--file', 'f.csv', '--write-off', '--expect-count', '1', ...WHY],
      ['p-1', '--not-sent', '--expect-count', '1', ...WHY],
      ['--file', 'f.csv', '--sent', '--txhash', 'h', ...WHY],
      ['p-1', '--file', 'f.csv', '--not-sent', ...WHY],
    ];
    for (const args of wrong) expect(await account.run('resolve', ...args)).toMatchObject({ code: 2, stdout: '' });
  });
});
