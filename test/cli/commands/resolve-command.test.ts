import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { createGatewayClient } from '../../../src/gateway/gateway-client.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { openTestKeys } from '../../control/support/key-files.js';
import { begin, NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { SECRET_KEY, textWith, useCli } from '../support/cli-rig.js';

const cli = useCli(true);
const PAYMENT = { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9' };
const WHY = ['--reason', 'ticket 812', '--by', 'ann'];
const IDS = ['p-1', 'p-2', 'p-3'];
const UNKNOWN = ['unknown', 'unknown', 'unknown'];
const UNREACHABLE = 'http://127.0.0.1:1';

const resolve = (...args: string[]): string[] => ['resolve', ...args, ...WHY];
const states = async (): Promise<unknown> => cli.states(...IDS);

/** Pays at the sandbox what a worker would have paid. @returns the txhash */
async function pay(payment = PAYMENT): Promise<string> {
  const { GATEWAY_BASE_URL: baseUrl = '' } = cli.env;
  const account = { baseUrl, platformId: cli.platformId, secretKey: SECRET_KEY };
  const client = createGatewayClient({ ...account, clock: systemClock, logger: silentLogger });
  const outcome = await client.withdraw(payment);
  client.close();
  if (outcome.kind !== 'accepted') throw new Error(`The sandbox did not pay: ${JSON.stringify(outcome)}`);
  return outcome.txhash;
}

/** p-1 to p-3, of which p-2 is of another currency. */
async function makeUnknown(...payoutIds: readonly string[]): Promise<void> {
  for (const payoutId of payoutIds.length === 0 ? IDS : payoutIds) {
    await cli.enqueue(payoutId, '--payment-id', payoutId === 'p-2' && payoutIds.length === 0 ? '7' : '6');
    await cli.force(payoutId, 'unknown');
  }
  await cli.redis.del(cli.keys.outbox);
}

describe('payouts resolve --sent', () => {
  it('follows a transaction that the gateway confirms, and records who and why', async () => {
    await makeUnknown('p-1');
    const txhash = await pay({ ...PAYMENT, amount: '12.50' });
    const result = await cli.runProcess(...resolve('p-1', '--sent', '--txhash', txhash, '--json'));
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(result.stdout)).toMatchObject({ state: 'in_progress', txhash });
    expect(await cli.lastChange('p-1')).toMatchObject({ from: 'unknown', by: 'ann', reason: 'ticket 812' });
    expect(await cli.jobs('transactionstatus')).toEqual(['p-1~0']);
    expect(await cli.redis.zcard(cli.keys.outbox)).toBe(0);
  });

  it('refuses a transaction with another amount, unless --force', async () => {
    await makeUnknown('p-1');
    const txhash = await pay({ ...PAYMENT, amount: '12.500000000000000001' });
    const sent = resolve('p-1', '--sent', '--txhash', txhash);
    await cli.refused(4, /amount is 12\.500000000000000001 at the gateway, 12\.5 in/, ...sent);
    expect(await cli.states('p-1')).toEqual(['unknown']);
    await cli.ok(...sent, '--force');
    expect(await cli.ledger.get('p-1')).toMatchObject({ state: 'in_progress', txhash });
    const reason = 'ticket 812 (txhash not checked with the gateway)';
    expect(await cli.lastChange('p-1')).toMatchObject({ reason });
  });

  it('refuses a transaction that the gateway does not know, or cannot be asked about, and what is none', async () => {
    await makeUnknown('p-1');
    const sent = (txhash: string): string[] => resolve('p-1', '--sent', '--txhash', txhash);
    await cli.refused(4, /no status for transaction abc: unknown/, ...sent('abc'));
    for (const txhash of ['null', `0x${'0'.repeat(64)}`, 'TXHASH']) {
      const message = /^payouts: --txhash: must be a real txhash, .*\(got ".*"\)\n$/;
      for (const more of [[], ['--force']]) await cli.refused(2, message, ...sent(txhash), ...more);
    }
    cli.env['GATEWAY_BASE_URL'] = UNREACHABLE;
    await cli.refused(1, '', ...sent('abc'));
    expect(await cli.states('p-1')).toEqual(['unknown']);
  });

  it('refuses the transaction of another payout, however it is spelt', async () => {
    await makeUnknown('p-1', 'p-2');
    const txhash = await pay();
    await cli.ok(...resolve('p-1', '--sent', '--txhash', txhash));
    for (const spelling of [txhash, txhash.toUpperCase(), `0x${txhash}`]) {
      const sent = resolve('p-2', '--sent', '--txhash', spelling);
      await cli.refused(4, /already belongs to payout p-1/, ...sent);
      expect(await cli.json('get', '--txhash', spelling)).toMatchObject({ payoutId: 'p-1', txhash });
    }
  });
});

describe('payouts resolve', () => {
  it('--not-sent queues it again, with a job of its own; --write-off cancels it', async () => {
    await makeUnknown('p-1', 'p-2');
    expect(await cli.ok(...resolve('p-1', '--not-sent'))).toMatch(/p-1 is queued: it is sent again/);
    expect(await cli.jobs()).toEqual(['p-1~1', 'p-2~0', 'p-1~0']);
    expect(await cli.lastChange('p-1')).toMatchObject({ by: 'ann', reason: 'ticket 812' });
    const written = await cli.json('resolve', 'p-2', '--write-off', '--reason', 'paid by hand');
    expect(written).toMatchObject({ payoutId: 'p-2', state: 'cancelled' });
    expect(await cli.lastChange('p-2')).toMatchObject({ by: textWith(/./) });
  });

  it.each([['--sent', '--txhash', 'abc'], ['--not-sent'], ['--write-off']])(
    '%s refuses what is not unknown',
    async (...decision) => {
      await cli.enqueue('p-1');
      const needs = /from queued to \w+: that needs unknown\. Allowed from queued: sending, cancelled/;
      await cli.refused(4, needs, ...resolve('p-1', ...decision));
      await cli.refused(3, 'p-2', ...resolve('p-2', ...decision));
      expect(await cli.states('p-1')).toEqual(['queued']);
    },
  );

  it('wants one decision, a reason, a txhash where it belongs, and one way to name payouts', async () => {
    await cli.refused(2, '--reason', 'resolve', 'p-1', '--not-sent');
    for (const args of [
      ...[['p-1'], ['p-1', '--not-sent', '--write-off'], ['p-1', '--sent'], ['p-1', '--sent', '--txhash', 'a b']],
      ...[['p-1', '--not-sent', '--txhash', 'abc'], ['p-1', '--write-off', '--force'], ['--not-sent']],
      ...[
        ['--state', 'unknown', '--file', 'f.csv', '--not-sent'],
        ['--state', 'unknown', '--sent'],
      ],
      ['--file', 'f.csv', '--write-off', '--expect-count', '1'],
      ['p-1', '--not-sent', '--expect-count', '1'],
      ['--file', 'f.csv', '--sent', '--txhash', 'h'],
      ['p-1', '--file', 'f.csv', '--not-sent'],
    ]) {
      await cli.refused(2, '', ...resolve(...args));
    }
  });
});

describe('payouts resolve --not-sent at a terminal', () => {
  const notSent = (...args: string[]): string[] => resolve('p-1', '--not-sent', ...args);

  it('shows amount, address and time, and sends again after a yes', async () => {
    await makeUnknown('p-1');
    const { code, stderr } = await cli.answered('y', ...notSent());
    expect(code).toBe(0);
    expect(stderr).toMatch(/amount +12\.5 \(payment_id 6\)\n[^]*address +TXYZ9\n/);
    expect(stderr).toMatch(/unknown since +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n/);
    expect(await cli.states('p-1')).toEqual(['queued']);
  });

  it('shows with whose key the decision is signed, and changes nothing after anything else', async () => {
    await makeUnknown('p-1');
    const keys = await openTestKeys();
    try {
      const { file } = await keys.makeKey('ann');
      const { code, stderr } = await cli.answered('', ...notSent('--key', file, '--key-name', 'ann-laptop'));
      expect(code).toBe(1);
      expect(stderr).toMatch(/signed with +key ann-laptop\n[^]*Nothing was changed/);
      expect(await cli.states('p-1')).toEqual(['unknown']);
    } finally {
      await keys.close();
    }
  });

  it('does not ask with --yes, nor where nothing is sent', async () => {
    await makeUnknown('p-1', 'p-2');
    for (const args of [notSent('--yes'), resolve('p-2', '--write-off')]) {
      const asking = cli.ask(...args);
      expect((await asking.result).code).toBe(0);
      expect(asking.asked()).toBe('');
    }
    expect(await cli.states('p-1', 'p-2')).toEqual(['queued', 'cancelled']);
  });

  it.each(['one', 'many'])('refuses where a payout was sent again while the question stood: %s', async (count) => {
    await makeUnknown('p-1');
    const file = await cli.file('unpaid.csv', 'payout_id', 'p-1');
    const asking = cli.ask(...(count === 'one' ? notSent() : resolve('--file', file, '--not-sent')));
    await asking.untilAsked();
    await cli.alter('p-1', { attempt: 1 });
    asking.answer(count === 'one' ? 'y' : '1');
    expect(await asking.result).toMatchObject({ code: 4, stderr: textWith(/was sent again meanwhile/) });
    expect(await cli.states('p-1')).toEqual(['unknown']);
  });
});

describe('payouts resolve --state unknown', () => {
  it('counts and adds up by currency, and changes nothing in a dry run', async () => {
    await makeUnknown();
    const stdout = await cli.ok(...resolve('--state', 'unknown', '--write-off', '--dry-run'));
    expect(stdout).toMatch(/^3 payouts unknown\n[^]*6 +2 +25\n[^]*7 +1 +12\.5\n[^]*Dry run: nothing was changed\.\n$/);
    expect(await states()).toEqual(UNKNOWN);
  });

  it('wants --yes where nobody can be asked, and refuses --not-sent, also in a dry run', async () => {
    await makeUnknown();
    const all = resolve('--state', 'unknown');
    await cli.refused(2, /--yes: is required/, ...all, '--write-off');
    for (const more of [['--yes'], ['--dry-run'], ['--expect-count', '3']]) {
      await cli.refused(2, /needs --file: .*--csv >/, ...all, '--not-sent', ...more);
    }
    expect(await states()).toEqual(UNKNOWN);
  });

  /** The block of the page as it was: its first command fails with exit code 2, and whoever pastes it goes on. */
  it('queues nothing where a pasted block goes on after a command that failed', async () => {
    await makeUnknown();
    const file = ['--file', await cli.file('unknown.csv', 'payout_id,txhash', `p-1,${await pay()}`, 'p-2,h-2', 'p-3,')];
    for (const args of [
      [...file, '--sent', '--yes'],
      ['--state', 'unknown', '--not-sent', '--yes'],
      [...file, '--not-sent', '--yes'],
    ]) {
      expect(await cli.run(...resolve(...args))).toMatchObject({ code: 2 });
    }
    expect(await states()).toEqual(UNKNOWN);
  });
});

describe('payouts resolve --file --not-sent', () => {
  const notSent = async (...args: string[]): Promise<string[]> =>
    resolve('--file', await cli.file('unpaid.csv', 'payout_id', ...IDS), '--not-sent', ...args);

  it('changes nothing without the number of payouts, or with another one', async () => {
    await makeUnknown();
    for (const [args, message] of [
      [[], /--expect-count: is required: there is no terminal/],
      [['--yes'], /--yes does not answer .*--expect-count N/],
      [['--expect-count', '4'], /--expect-count: must be the number of payouts .*, 3 \(got 4\)/],
      [['--expect-count', '2'], /--expect-count: must be the number of payouts .*, 3 \(got 2\)/],
      [['--expect-count', '3x'], /must be a number of payouts/],
    ] as const) {
      const { code, stderr } = await cli.run(...(await notSent(...args)));
      expect([code, stderr]).toEqual([2, textWith(message)]);
    }
    const named = await cli.file('named.csv', 'payout_id,txhash', 'p-1,h-1', 'p-2,');
    const transaction = await cli.run(...resolve('--file', named, '--not-sent', '--expect-count', '2'));
    expect(transaction).toMatchObject({ code: 2, stderr: textWith(/line 2: txhash: must be empty/) });
    const asked = await cli.answered('y', ...(await notSent()));
    expect(asked).toMatchObject({ code: 1, stderr: textWith(/Nothing was changed/) });
    expect(asked.asked).toContain(
      `Send 3 payouts of account ${cli.platformId} again (what was paid is paid twice)? Type how many: `,
    );
    expect(await states()).toEqual(UNKNOWN);
    expect(await cli.answered('3', ...(await notSent()))).toMatchObject({ code: 0 });
    expect(await states()).toEqual(['queued', 'queued', 'queued']);
  });

  it('queues each of them again, with a job of its own and who and why', async () => {
    await makeUnknown();
    expect(await cli.ok(...(await notSent('--expect-count', '3')))).toMatch(/3 payouts queued again\.\n$/);
    expect(await states()).toEqual(['queued', 'queued', 'queued']);
    expect(await cli.jobs()).toEqual(expect.arrayContaining(['p-1~1', 'p-2~1', 'p-3~1']));
    expect(await cli.lastChange('p-3')).toMatchObject({ by: 'ann', reason: 'ticket 812' });
    const again = await cli.json(...(await notSent('--expect-count', '3')));
    expect(again).toMatchObject({ payouts: 0, changed: 0, refused: 0 });
  });

  it('leaves a payout whose request may still be on its way, and resolves the others', async () => {
    await makeUnknown();
    await cli.alter('p-2', { doubtUntil: Date.now() + 60_000 });
    const result = await cli.run(...(await notSent('--expect-count', '3')));
    expect(result).toMatchObject({ code: 4, stdout: textWith(/2 payouts queued again/) });
    expect(result.stderr).toMatch(/request of payout p-2 may still be on its way to the gateway for \d+ s/);
    expect(await states()).toEqual(['queued', 'unknown', 'queued']);
  });

  it('leaves a payout that it has queued again and that was sent since: nobody has decided about that', async () => {
    await makeUnknown('p-1', 'p-2');
    // A first run came as far as p-1.
    await cli.ok(...resolve('p-1', '--not-sent', '--yes'));
    const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
    const attempt = await begin(sender, await takeLease(sender, 'one'), 'p-1');
    await sender.finishSend(attempt, { kind: 'unknown', reason: 'no response in time' }, NO_BREAKER, 0);
    const file = await cli.file('unknown.csv', 'payout_id', 'p-1', 'p-2');
    const again = await cli.run(...resolve('--file', file, '--not-sent', '--expect-count', '1'));
    expect(again).toMatchObject({ code: 0, stdout: textWith(/1 payout queued again/) });
    expect(await cli.states('p-1', 'p-2')).toEqual(['unknown', 'queued']);
  });
});

describe('payouts resolve --file', () => {
  it('takes what `payouts list --csv` writes, leaves what is not unknown any more, and continues where it stopped', async () => {
    await makeUnknown();
    const csv = await cli.ok('list', '--state', 'unknown', '--csv');
    await cli.ok(...resolve('p-2', '--write-off'));
    const file = await cli.file('unknown.csv', ...csv.trimEnd().split('\n'));
    const result = await cli.run(...resolve('--file', file, '--write-off', '--yes', '--json'));
    expect(result).toMatchObject({ code: 0, stderr: textWith(/2 payouts unknown, 1 cancelled left/) });
    expect(JSON.parse(result.stdout)).toMatchObject({ payouts: 2, others: { cancelled: 1 }, changed: 2, refused: 0 });
    expect(await states()).toEqual(['cancelled', 'cancelled', 'cancelled']);
  });

  it.each([
    ['payout_id,txhash\np-1,h-1\np-1,h-2', /line 3: payout_id: is already on line 2, with another txhash/],
    ['payout_id,txhash\np-1,h-1\np-2,h-1', /line 3: txhash: is already on line 2, for payout p-1/],
    [
      `payout_id,txhash\np-1,0x${'ab'.repeat(32)}\np-2,${'AB'.repeat(32)}`,
      /line 3: txhash: is already on line 2, for payout p-1/,
    ],
    ['payout_id,txhash\np-1,', /line 2: txhash: /],
    ['payout_id,txhash\np-1,h-1\np-9,h-9', /line 3: payout p-9 not found/],
    ['payout_id,txhash,notes\np-1,h-1,hello', /line 1: "notes": is not a known column/],
    ['txhash\nh-1', /line 1: payout_id: is missing/],
    ['payout_id', /names no payout/],
  ])('refuses a file of %j', async (text, message) => {
    await makeUnknown('p-1');
    const file = await cli.file('wrong.csv', text);
    const { code, stderr } = await cli.run(...resolve('--file', file, '--sent', '--force', '--yes'));
    expect([code, stderr]).toEqual([2, textWith(message)]);
    expect(await cli.states('p-1')).toEqual(['unknown']);
  });

  it('--sent follows each transaction that the gateway confirms, and leaves the others', async () => {
    await makeUnknown();
    const lines = [`{"payoutId":"p-1","txhash":"${await pay()}"}`, `{"payoutId":"p-3","txhash":"h-9"}`];
    const result = await cli.run(...resolve('--file', await cli.file('sent.jsonl', ...lines), '--sent', '--yes'));
    expect(result).toMatchObject({ code: 4, stdout: textWith(/1 payout in progress/) });
    expect(result.stderr).toMatch(/no status for transaction h-9/);
    expect(await states()).toEqual(['in_progress', 'unknown', 'unknown']);
  });

  it('stops at the first sign that the gateway is unavailable, and says how far it came', async () => {
    await makeUnknown();
    cli.env['GATEWAY_BASE_URL'] = UNREACHABLE;
    const file = await cli.file('sent.csv', 'payout_id,txhash', 'p-1,h-1', 'p-2,h-2');
    const result = await cli.run(...resolve('--file', file, '--sent', '--yes'));
    expect(result).toMatchObject({ code: 1 });
    expect(result.stderr).toMatch(/0 of 2 payouts done; run the same command again to continue/);
  });
});
