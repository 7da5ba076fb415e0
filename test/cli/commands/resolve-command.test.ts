import { beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/logger.js';
import { createGatewayClient } from '../../../src/gateway/v1/client.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { openTestKeys } from '../../control/support/key-files.js';
import { begin, NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { SECRET_KEY, textWith, useCli } from '../support/cli-rig.js';

/** The rules themselves are in test/operator/payout-operator.test.ts. */

const cli = useCli(true);
const PAYMENT = { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9' };
const IDS = ['p-1', 'p-2', 'p-3'];
const UNKNOWN = ['unknown', 'unknown', 'unknown'];
const UNREACHABLE = 'http://127.0.0.1:1';

const resolve = (...args: string[]) => ['resolve', ...args, '--reason', 'ticket 812', '--by', 'ann'];

/** Pays at the sandbox what a worker would have paid. @returns the gatewayId */
async function pay(payment = PAYMENT) {
  const { GATEWAY_BASE_URL: baseUrl = '' } = cli.env;
  const account = { baseUrl, platformId: cli.platformId, secretKey: SECRET_KEY };
  const client = createGatewayClient({ ...account, clock: systemClock, logger: silentLogger });
  const outcome = await client.withdraw(payment);
  client.close();
  if (outcome.kind !== 'accepted') throw new Error(`The sandbox did not pay: ${JSON.stringify(outcome)}`);
  return outcome.gatewayId;
}

/** Without ids, p-1 to p-3, of which p-2 is of another currency. */
async function makeUnknown(...payoutIds: readonly string[]) {
  for (const payoutId of payoutIds.length === 0 ? IDS : payoutIds) {
    await cli.enqueue(payoutId, '--payment-id', payoutId === 'p-2' && payoutIds.length === 0 ? '7' : '6');
    await cli.force(payoutId, 'unknown');
  }
  await cli.redis.del(cli.keys.outbox);
}

it('--sent follows a transaction that the gateway confirms, of one payout', async () => {
  await makeUnknown('p-1', 'p-2');
  const gatewayId = await pay();
  const sent = await cli.json(...resolve('p-1', '--sent', '--gateway-id', gatewayId));
  expect(sent).toMatchObject({ state: 'in_progress', gatewayId });
  expect(await cli.lastChange('p-1')).toMatchObject({ from: 'unknown', by: 'ann', reason: 'ticket 812' });
  expect(await cli.jobs('transactionstatus')).toEqual(['p-1~0']);
  expect(await cli.redis.zcard(cli.keys.outbox)).toBe(0);
  for (const spelling of [gatewayId, `0x${gatewayId.toUpperCase()}`]) {
    await cli.refused(4, /already belongs to payout p-1/, ...resolve('p-2', '--sent', '--gateway-id', spelling));
  }
});

it('--sent refuses what the gateway does not confirm, unless --force', async () => {
  await makeUnknown('p-1');
  const sent = (gatewayId: string, ...more: string[]) => resolve('p-1', '--sent', '--gateway-id', gatewayId, ...more);
  await cli.refused(4, /no status for abc: unknown/, ...sent('abc'));
  for (const more of [[], ['--force']]) {
    await cli.refused(2, /^payouts: --gateway-id: must be a real id, .*\(got "null"\)\n$/, ...sent('null', ...more));
  }
  const gatewayId = await pay({ ...PAYMENT, amount: '12.500000000000000001' });
  await cli.refused(4, /amount is 12\.500000000000000001 at the gateway, 12\.5 in/, ...sent(gatewayId));
  cli.env['GATEWAY_BASE_URL'] = UNREACHABLE;
  await cli.refused(1, '', ...sent(gatewayId));
  expect(await cli.states('p-1')).toEqual(['unknown']);
  await cli.ok(...sent(gatewayId, '--force'));
  const reason = 'ticket 812 (payment not checked with the gateway)';
  expect(await cli.lastChange('p-1')).toMatchObject({ to: 'in_progress', reason });
});

it('--not-sent queues it again, --write-off writes it off, which says nothing about a payment', async () => {
  await makeUnknown('p-1', 'p-2');
  expect(await cli.ok(...resolve('p-1', '--not-sent', '--attempt', '0'))).toMatch(/p-1 is queued: it is sent again/);
  const written = await cli.json('resolve', 'p-2', '--write-off', '--reason', 'paid by hand');
  expect(written).toMatchObject({ payoutId: 'p-2', state: 'written_off', final: true });
  await cli.enqueue('p-3');
  for (const decision of [
    ['--sent', '--gateway-id', 'abc'],
    ['--not-sent', '--attempt', '0'],
  ]) {
    await cli.refused(4, /from queued to \w+: that needs unknown\. Allowed/, ...resolve('p-3', ...decision));
    await cli.refused(3, 'p-9', ...resolve('p-9', ...decision));
  }
});

it('--write-off takes what was not sent, too, says the ledger: cancelled, it would say that nothing was paid', async () => {
  for (const state of ['queued', 'held', 'rejected'] as const) {
    await cli.make(state, state);
    expect(await cli.json('resolve', state, '--write-off', '--reason', 'paid by host a')).toMatchObject({
      state: 'written_off',
    });
  }
  const kinds = (await cli.lines('activity')).map(({ what }) => what);
  expect(kinds).toEqual(['written_off', 'written_off', 'written_off']);
  await cli.make('completed', 'paid');
  await cli.refused(4, /from completed to written_off/, ...resolve('paid', '--write-off'));
  await cli.refused(3, 'p-9', ...resolve('p-9', '--write-off'));
});

it('--write-off says what to keep until a worker has it: an older Redis would send what was paid by other means', async () => {
  const keep = /No worker is known to have it on its disk\. Keep this command: if Redis comes back from an older copy/;
  await cli.enqueue('p-1');
  expect(await cli.ok(...resolve('p-1', '--write-off'))).toMatch(keep);
  await makeUnknown('p-2');
  expect(await cli.ok(...resolve('--state', 'unknown', '--write-off', '--yes'))).toMatch(keep);
});

it('wants one decision, a gatewayId where it belongs, and one way to name payouts', async () => {
  for (const args of [
    ...['p-1', 'p-1 --not-sent --write-off', 'p-1 --sent', 'p-1 --not-sent --gateway-id abc', '--not-sent'],
    ...['p-1 --not-sent --attempt x', 'p-1 --write-off --attempt 1', '--file f.csv --not-sent --attempt 1'],
    ...['p-1 --write-off --force', '--state unknown --file f.csv --not-sent', 'p-1 --not-sent --expect-count 1'],
  ]) {
    await cli.refused(2, '', ...resolve(...args.split(' ')));
  }
});

const notSent = (...args: string[]) => resolve('p-1', '--not-sent', '--attempt', '0', ...args);

it('--not-sent at a terminal shows amount, address, time and key, and sends again after a yes alone', async () => {
  await makeUnknown('p-1');
  const keys = await openTestKeys();
  const { file } = await keys.makeKey('ann');
  const stopped = await cli.answered('', ...notSent('--key', file, '--key-name', 'ann-laptop'));
  await keys.close();
  const unchanged = textWith(/signed with +key ann-laptop\n[^]*Nothing was changed/);
  expect(stopped).toMatchObject({ code: 1, stderr: unchanged });
  expect(await cli.states('p-1')).toEqual(['unknown']);
  const { code, stderr } = await cli.answered('y', ...notSent());
  const shown = /amount +12\.5 \(payment_id 6\)\n[^]*address +TXYZ9\n[^]*unknown since +\d{4}-.* UTC\n/;
  expect([code, stderr]).toEqual([0, textWith(shown)]);
  expect(await cli.states('p-1')).toEqual(['queued']);
});

it.each(['one', 'many'])('refuses where a payout was sent again while the question stood: %s', async (count) => {
  await makeUnknown('p-1');
  const file = await cli.file('unpaid.csv', 'payout_id,attempt', 'p-1,0');
  const asking = cli.ask(...(count === 'one' ? notSent() : resolve('--file', file, '--not-sent')));
  await asking.untilAsked();
  await cli.alter('p-1', { attempt: 1 });
  asking.answer(count === 'one' ? 'y' : '1');
  expect(await asking.result).toMatchObject({ code: 4, stderr: textWith(/was sent again meanwhile/) });
  expect(await cli.states('p-1')).toEqual(['unknown']);
});

describe('payouts resolve of many', () => {
  const states = async (): Promise<unknown> => cli.states(...IDS);
  beforeEach(async () => makeUnknown());

  it('--state unknown counts and adds up; wants --yes; never takes --not-sent', async () => {
    const all = resolve('--state', 'unknown');
    expect(await cli.ok(...all, '--write-off', '--dry-run')).toMatch(
      /^3 payouts unknown\n[^]*6 +2 +25\n[^]*7 +1 +12\.5\n[^]*Dry run: nothing was changed\.\n$/,
    );
    await cli.refused(2, /--yes: is required/, ...all, '--write-off');
    await cli.refused(2, /needs --file: .*--csv >/, ...all, '--not-sent', '--expect-count', '3');
    // A file that names transactions is one of what was sent.
    const file = await cli.file('unknown.csv', 'payout_id,gateway_id', `p-1,${await pay()}`, 'p-2,h-2', 'p-3,');
    for (const args of ['--sent --yes', '--not-sent --expect-count 3']) {
      expect(await cli.run(...resolve('--file', file, ...args.split(' ')))).toMatchObject({ code: 2 });
    }
    expect(await states()).toEqual(UNKNOWN);
  });

  const notSent = async (...args: string[]) =>
    resolve(
      '--file',
      await cli.file('unpaid.csv', 'payout_id,attempt', ...IDS.map((id) => `${id},0`)),
      '--not-sent',
      ...args,
    );

  it('--not-sent changes nothing without the number of payouts', async () => {
    for (const [args, message] of [
      [[], /--expect-count: is required: there is no terminal/],
      [['--yes'], /--yes does not answer .*--expect-count N/],
      [['--expect-count', '4'], /--expect-count: must be the number of payouts .*, 3 \(got 4\)/],
      [['--expect-count', '3x'], /must be a number of payouts/],
    ] as const) {
      expect(await cli.run(...(await notSent(...args)))).toMatchObject({ code: 2, stderr: textWith(message) });
    }
    const asked = await cli.answered('y', ...(await notSent()));
    expect(asked).toMatchObject({ code: 1, stderr: textWith(/Nothing was changed/) });
    expect(asked.asked).toContain(
      `Send 3 payouts of account ${cli.platformId} again (what was paid is paid twice)? Type how many: `,
    );
    expect(await states()).toEqual(UNKNOWN);
    expect(await cli.answered('3', ...(await notSent()))).toMatchObject({ code: 0 });
    expect(await states()).toEqual(['queued', 'queued', 'queued']);
  });

  it('--not-sent queues each again, and leaves one whose request may still be on its way', async () => {
    await cli.alter('p-2', { inFlightUntil: Date.now() + 60_000 });
    const result = await cli.run(...(await notSent('--expect-count', '3')));
    expect(result).toMatchObject({ code: 4, stdout: textWith(/2 payouts queued again/) });
    expect(result.stderr).toMatch(
      /request of payout p-2 may still arrive at the gateway until .* UTC, in (59 s|1 min)/,
    );
    expect(await states()).toEqual(['queued', 'unknown', 'queued']);
    expect(await cli.lastChange('p-3')).toMatchObject({ by: 'ann', reason: 'ticket 812' });
  });

  async function sendAgain(payoutId: string) {
    const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
    const attempt = await begin(sender, await takeLease(sender, 'one'), payoutId);
    await sender.finishSend(attempt, { kind: 'unknown', reason: 'no response in time' }, NO_BREAKER, 0);
  }

  it.each(['ticket 812', 'ticket 999'])(
    '--not-sent says nothing about an attempt after the one that it names, for the reason "%s"',
    async (reason) => {
      // A first run came as far as p-1, which was sent again, and perhaps paid.
      await cli.ok(...resolve('p-1', '--not-sent', '--attempt', '0', '--yes'));
      await sendAgain('p-1');
      const [command = '', ...args] = await notSent('--expect-count', '2');
      const again = await cli.run(command, ...args.with(args.indexOf('ticket 812'), reason));
      const stale = /line 2: payout p-1: the file is about attempt 0, the payout is at attempt 1: look that one up/;
      expect(again).toMatchObject({ code: 4, stdout: textWith(/2 payouts queued again/), stderr: textWith(stale) });
      expect(await states()).toEqual(['unknown', 'queued', 'queued']);
      const one = ['resolve', 'p-1', '--not-sent', '--attempt', '0', '--reason', reason];
      await cli.refused(4, /was sent again meanwhile \(attempt 1\)/, ...one);
      expect(await cli.states('p-1')).toEqual(['unknown']);
    },
  );

  it('--not-sent refuses a file from before its payout became unknown, and takes the export of now', async () => {
    const listed = await cli.ok('list', '--state', 'unknown', '--all', '--csv');
    expect(listed).toMatch(/,updated_at,late_gateway_id,late_txhash,attempt,comment\n/);
    const old = listed.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2020-01-01T00:00:00.000Z');
    const refused = await cli.run(
      ...resolve('--file', await cli.file('old.csv', old), '--not-sent', '--expect-count', '0'),
    );
    const stale = /line 2: payout p-1: the file is of 2020-01-01 00:00:00 UTC, the payout became unknown at /;
    expect(refused).toMatchObject({ code: 4, stderr: textWith(stale) });
    expect(await states()).toEqual(UNKNOWN);
    await cli.ok(...resolve('--file', await cli.file('new.csv', listed), '--not-sent', '--expect-count', '3'));
    expect(await states()).toEqual(['queued', 'queued', 'queued']);
  });

  it('--not-sent refuses a file whose rows name no attempt, or two', async () => {
    for (const [lines, message] of [
      [['payout_id', 'p-1'], /line 2: attempt: is missing/],
      [['payout_id,attempt', 'p-1,x'], /line 2: attempt: must be/],
      [['payout_id,attempt', 'p-1,0', 'p-1,1'], /line 3: payout_id: is already on line 2, with another attempt/],
      [['payout_id,attempt,updated_at', 'p-1,0,soon'], /line 2: updated_at: must be a time/],
    ] as const) {
      const file = await cli.file('wrong.csv', ...lines);
      const result = await cli.run(...resolve('--file', file, '--not-sent', '--expect-count', '1'));
      expect(result).toMatchObject({ code: 2, stderr: textWith(message) });
    }
    expect(await states()).toEqual(UNKNOWN);
  });

  it('--file is refused as a whole for one wrong line', async () => {
    for (const [text, message] of [
      ['payout_id,gateway_id\np-1,h-1\np-1,h-2', /line 3: payout_id: is already on line 2, with another gatewayId/],
      [
        `payout_id,gateway_id\np-1,0x${'ab'.repeat(32)}\np-2,${'AB'.repeat(32)}`,
        /line 3: .* on line 2, for payout p-1/,
      ],
      ['payout_id,gateway_id\np-1,', /line 2: gateway_id: /],
      ['payout_id,gateway_id\np-1,h-1\np-9,h-9', /line 3: payout p-9 not found/],
    ] as const) {
      const file = await cli.file('wrong.csv', text);
      const { code, stderr } = await cli.run(...resolve('--file', file, '--sent', '--force', '--yes'));
      expect([code, stderr]).toEqual([2, textWith(message)]);
    }
    expect(await states()).toEqual(UNKNOWN);
  });

  it('--file --sent follows what the gateway confirms', async () => {
    const lines = [`{"payoutId":"p-1","gatewayId":"${await pay()}"}`, `{"payoutId":"p-3","gatewayId":"h-9"}`];
    const sent = resolve('--file', await cli.file('sent.jsonl', ...lines), '--sent', '--yes');
    const result = await cli.run(...sent);
    expect(result).toMatchObject({ code: 4, stdout: textWith(/1 payout in progress/) });
    expect(result.stderr).toMatch(/no status for h-9/);
    expect(await states()).toEqual(['in_progress', 'unknown', 'unknown']);
    cli.env['GATEWAY_BASE_URL'] = UNREACHABLE;
    const stopped = /0 of 1 payouts? done; run the same command again to continue/;
    expect(await cli.run(...sent)).toMatchObject({ code: 1, stderr: textWith(stopped) });
  });
});

describe("--from-gateway matches the gateway's list", () => {
  const MAP = ['--map', 'gateway_id=Hash,address=To,amount=Amount,time=Created'];
  const fromGateway = (file: string, ...args: string[]) => resolve('--from-gateway', file, ...args);
  const now = () => new Date().toISOString();
  const rowOf = (gatewayId: string, changes: { amount?: string; to?: string; at?: string } = {}) =>
    [gatewayId, 'done', changes.to ?? PAYMENT.addressTo, changes.amount ?? '-12.50', changes.at ?? now()].join(',');
  const write = async (...rows: string[]) => cli.file('list.csv', 'Hash,Status,To,Amount,Created', ...rows);

  it('shows what matches and changes nothing, and with --apply follows what the gateway confirms', async () => {
    await makeUnknown('p-1', 'p-2');
    await cli.redis.hset(cli.keys.payout('p-2'), 'amount', '7');
    const gatewayId = await pay();
    const file = await write(rowOf(gatewayId), rowOf('pending'), rowOf('of-another', { amount: '99' }));
    expect(await cli.json(...fromGateway(file, ...MAP))).toEqual({
      ...{ payments: 2, withoutTransaction: 1, ambiguous: [], unmatched: ['p-2'] },
      matched: [expect.objectContaining({ payoutId: 'p-1', gatewayId, line: 2, by: 'address, amount and time' })],
    });
    const shown = await cli.ok(...fromGateway(file, ...MAP));
    expect(shown).toMatch(
      /p-1 +matches +\w+ +line 2 +by address[^]*p-2 +no match[^]*it may be paid all the same[^]*Nothing was changed/,
    );
    expect(await cli.states('p-1', 'p-2')).toEqual(['unknown', 'unknown']);
    expect(await cli.ok(...fromGateway(file, ...MAP, '--apply'))).toMatch(/1 payout in progress/);
    expect(await cli.states('p-1', 'p-2')).toEqual(['in_progress', 'unknown']);
    expect(await cli.lastChange('p-1')).toMatchObject({ to: 'in_progress', by: 'ann', reason: 'ticket 812' });
  });

  it('changes nothing that fits twice, or that the gateway does not confirm', async () => {
    await makeUnknown('p-1');
    const twice = await write(rowOf('ab'.repeat(32)), rowOf('cd'.repeat(32)));
    expect(await cli.ok(...fromGateway(twice, ...MAP, '--apply'))).toMatch(/p-1 +ambiguous +line 2, 3/);
    const invented = await write(rowOf('ab'.repeat(32)));
    expect(await cli.run(...fromGateway(invented, ...MAP, '--apply'))).toMatchObject({
      ...{ code: 4, stderr: textWith(/^(?![^]*--force)[^]*no status for /) },
    });
    expect(await cli.states('p-1')).toEqual(['unknown']);
  });

  it('refuses a list that it cannot read, and other options', async () => {
    const file = await write(rowOf('abc', { at: '2030-01-31 09:00' }), rowOf('abd', { amount: '1,5' }));
    await cli.refused(2, /Created: must be a time with its zone/, ...fromGateway(file, ...MAP));
    await cli.refused(2, /gateway_id: is missing: the first line/, ...fromGateway(file));
    await cli.refused(2, /--map: must name columns by gateway_id, address/, ...fromGateway(file, '--map', 'hash=Hash'));
    for (const other of [['--not-sent'], ['p-1'], ['--state', 'unknown']])
      await cli.refused(2, /goes with --map, --apply/, ...fromGateway(file, ...MAP, ...other));
  });
});
