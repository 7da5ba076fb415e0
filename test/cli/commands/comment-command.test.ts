import { userInfo } from 'node:os';
import { expect, it } from '@jest/globals';
import { useCli } from '../support/cli-rig.js';

/** `payouts comment`, and where the command line shows what it wrote; the rules are in test/operator. */

const cli = useCli();

it('payouts comment writes a line that get, list, approvals, activity and exports show', async () => {
  await cli.enqueue('p-1');
  await cli.enqueue('p-2');
  expect(await cli.ok('comment', 'p-1', '--text', 'I am on it')).toBe(
    `Payout p-1 (queued) has the comment of ${userInfo().username}: I am on it\n`,
  );
  const formula = '=HYPERLINK("x")';
  const json: unknown = JSON.parse(await cli.ok('comment', 'p-1', '--by', 'ann', '--text', formula, '--json'));
  const written = { at: expect.any(String) as unknown, by: 'ann', text: formula };
  expect(json).toMatchObject({ payoutId: 'p-1', state: 'queued', comments: [{ text: 'I am on it' }, written] });
  expect(await cli.ok('get', 'p-1')).toMatch(
    /\nComments \(UTC\), not signed\n +\d{4}-[\d: -]+ +\S+: I am on it\n +\d{4}-[\d: -]+ +ann: =HYPERLINK/,
  );
  expect(await cli.ok('get', 'p-2')).not.toContain('Comments');
  expect(JSON.parse(await cli.ok('get', 'p-1', '--json'))).toMatchObject({ comments: [{}, written] });
  const list = await cli.ok('list', '--state', 'queued');
  expect(list).toMatch(/MESSAGE +COMMENT\np-1 .*ann: =HYPERLINK\("x"\)/);
  const [head = '', row = ''] = (await cli.ok('list', '--state', 'queued', '--csv')).split('\n');
  expect(head).toMatch(/,comment$/);
  expect(row).toMatch(/,"ann: =HYPERLINK\(""x""\)"$/);
  expect(await cli.ok('activity')).toMatch(/ann +p-1 wrote a comment +=HYPERLINK/);
  const exported = (await cli.run('export')).stdout.split('\n').filter((line) => line.includes('HYPERLINK'));
  expect(exported.map((line) => (JSON.parse(line) as { kind: string }).kind)).toEqual(['payout', 'activity']);
});

it('payouts comment is refused without a text, with a long one, and for a payout that is not there', async () => {
  await cli.enqueue('p-1');
  await cli.refused(2, '--text', 'comment', 'p-1');
  await cli.refused(2, '--text: must have at most 200 characters', 'comment', 'p-1', '--text', 'x'.repeat(201));
  await cli.refused(2, '--by: must not be empty', 'comment', 'p-1', '--text', 'x', '--by', '');
  await cli.refused(3, 'Payout p-9 not found', 'comment', 'p-9', '--text', 'x');
});
