import { expect, it } from '@jest/globals';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { sendOf } from '../../operator/support/adoption-world.js';
import { useCli } from '../support/cli-rig.js';

const cli = useCli();

const FUTURE = '2099-01-31T09:00:00.000Z';
const PAST = '2020-01-31T09:00:00.000Z';

/** An older copy of Redis: it knows neither the journal's send nor what was decided since. */
async function comeBackOlder() {
  const journal = await FileSendJournal.open({ dir: cli.dir, platformId: cli.platformId });
  await journal.bind({ ledgerId: 'former', epoch: 1, sends: 0, token: '' });
  await journal.append(sendOf('sent', 1));
  await journal.close();
  for (const payoutId of ['held-1', 'held-2', 'plain']) await cli.enqueue(payoutId);
  await cli.enqueue('later', '--not-before', FUTURE);
  await cli.enqueue('due', '--not-before', FUTURE);
  await cli.enqueue('cancelled-again', '--not-before', FUTURE);
  const sender = new RedisSenderLedger(cli.ledger.connection, 'reply');
  await sender.holdPayout('held-1', 0, HOLD);
  const message = 'Rule day of the policy: 18000 of 20000 are spent';
  await sender.holdPayout('held-2', 0, { ...HOLD, kind: 'policy', reason: 'wait', message });
  await cli.run('cancel', 'cancelled-again', '--reason', 'fraud');
  // The copy was made a while ago.
  const { keys, redis } = cli;
  await cli.alter('due', { notBefore: PAST });
  await redis.zrem(keys.scheduled, `${FUTURE} due`);
  await redis.zadd(keys.scheduled, 0, `${PAST} due`);
}

const adopt = (...args: readonly string[]) => [
  'adopt-ledger',
  '--journal',
  cli.dir,
  '--yes',
  '--reason',
  'ticket 9',
  ...args,
];

it('lists one by one what came back held or with a date, as only Redis has it', async () => {
  await comeBackOlder();
  const { code, stdout } = await cli.run(...adopt());
  expect(code).toBe(0);
  const listed = stdout.slice(stdout.indexOf('These are held again'));
  expect(listed.split('\n').map((line) => line.trim().replace(/ {2,}/g, ' | '))).toEqual([
    'These are held again, for the reason of that copy:',
    expect.stringMatching(/^held-1 \| since \d{4}-\S+ \S+ UTC \| the signature expired$/),
    expect.stringMatching(/^held-2 \| since .* UTC \| Rule day of the policy: 18000 of 20000 are spent$/),
    'These are queued for the date of that copy:',
    'due | not before 2020-01-31 09:00:00 UTC | its date has passed: it is sent once the account is resumed',
    'later | not before 2099-01-31 09:00:00 UTC',
    '',
  ]);
});

it('has them in its JSON, too, and nothing of them without an adoption', async () => {
  await comeBackOlder();
  expect(await cli.json(...adopt())).toMatchObject({
    unknown: ['sent'],
    cameBack: {
      held: {
        payouts: [
          { payoutId: 'held-1', held: { kind: 'signature', reason: 'expired', message: 'the signature expired' } },
          { payoutId: 'held-2', held: { kind: 'policy', reason: 'wait' } },
        ],
        more: 0,
      },
      notBefore: {
        payouts: [
          { payoutId: 'due', notBefore: PAST },
          { payoutId: 'later', notBefore: FUTURE },
        ],
        more: 0,
      },
    },
  });
  expect(await cli.json(...adopt())).toEqual({ mismatch: null, unknown: [] });
});
