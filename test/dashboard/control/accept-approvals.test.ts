import { createPrivateKey } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/clock.js';
import { formatApproval, type Approval, type SignedApproval } from '../../../src/control/approval.js';
import { signText } from '../../../src/control/ed25519.js';
import { newPlatformId } from '../../support/account.js';
import type { KeyEntry } from '../../control/support/keys.js';
import { openApprovalRig, type ApprovalRig } from '../../cli/support/approval-rig.js';
import { basicAuth, openDashboard, type RunningDashboard } from '../support/running-dashboard.js';

/** The one write of the dashboard. */

const PASSWORD = 'a long password';
const CLOCK = { ...systemClock, advance: () => undefined };

let rig: ApprovalRig;
let dashboard: RunningDashboard;
let platformId: number;
/** Each is closed at the end, also after a failure. */
const open: RunningDashboard[] = [];

async function start(...[account, options]: Parameters<typeof openDashboard>): Promise<RunningDashboard> {
  const started = await openDashboard(account, options);
  open.push(started);
  return started;
}
let keysFile: string;

beforeAll(async () => {
  rig = await openApprovalRig();
  platformId = rig.account.ledger.connection.platformId;
  keysFile = rig.env['PAYOUT_KEYS_FILE'] ?? '';
  dashboard = await start({ platformId, clock: CLOCK }, { keysFile, password: PASSWORD });
});

afterAll(async () => {
  await Promise.all(open.map(async (each) => each.close()));
  await rig.close();
});

type Body = Readonly<Record<string, unknown>>;

/** What `payouts approve --offline` prints. */
async function sign(payoutId: string, key: keyof ApprovalRig['files'], ...args: string[]): Promise<Body> {
  const option = key === 'bob' ? '--ssh-key' : '--key';
  const printed = await rig.run('approve', payoutId, option, rig.files[key], '--yes', '--offline', ...args);
  expect(printed).toMatchObject({ code: 0 });
  return JSON.parse(printed.stdout) as Body;
}

const HEADERS = { authorization: basicAuth('payouts', PASSWORD), 'content-type': 'application/json' };

interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function post(body: unknown, headers: Record<string, string> = {}, to = dashboard): Promise<Reply> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await to.ask('/approvals', { method: 'POST', headers: { ...HEADERS, ...headers }, body: text });
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  return { status: response.status, body: (await response.json()) as Reply['body'] };
}

const time = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

/** Signed with a key, whatever it says: the command would refuse to. */
async function signAs(
  key: string,
  payoutId: string,
  { platformId: account = platformId, ...change }: Partial<Approval> & { readonly platformId?: number } = {},
): Promise<SignedApproval> {
  const printed = await rig.run('approve', payoutId, '--offline', '--key-name', 'bob');
  const { intent } = JSON.parse(printed.stdout) as { intent: string };
  const approval = {
    payoutId,
    intent,
    decision: 'approve',
    by: key,
    at: time(0),
    expiresAt: time(1),
    ...change,
  } as const;
  const privateKey = createPrivateKey(await readFile(`${rig.keys.dir}/${key}.pem`));
  return { ...approval, signature: signText(formatApproval(account, approval), privateKey) };
}

/** Changes the file under the running dashboard, which reads it again within a second. */
async function changeKeyring(change: (keys: readonly KeyEntry[]) => readonly KeyEntry[]): Promise<void> {
  const { keys } = JSON.parse(await readFile(keysFile, 'utf8')) as { keys: readonly KeyEntry[] };
  await writeFile(keysFile, JSON.stringify({ version: 1, keys: change(keys) }));
  await new Promise((resolve) => setTimeout(resolve, 1_100));
}

const approvalsOf = async (payoutId: string): Promise<string[]> =>
  (await rig.account.ledger.require(payoutId)).approvals?.map(({ by, decision }) => `${decision} ${by}`) ?? [];

/** Asserts that nothing of the payout changed meanwhile. */
async function expectRefused(payoutId: string, work: () => Promise<Reply>, expected: object): Promise<void> {
  const { connection } = rig.account.ledger;
  const record = async (): Promise<unknown> => connection.redis.hgetall(connection.keys.payout(payoutId));
  const before = await record();
  expect(await work()).toMatchObject(expected);
  expect(await record()).toEqual(before);
  expect(await connection.redis.sismember(connection.keys.recheck, payoutId)).toBe(0);
}

describe('POST /approvals', () => {
  it('keeps what counts, says what is missing, and tells the worker', async () => {
    await rig.hold('p');
    const first = await post(await sign('p', 'ann', '--reason', 'ticket 9'));
    expect(first).toMatchObject({
      status: 200,
      body: {
        ...{ payoutId: 'p', decision: 'approve', by: 'ann', person: 'Ann', state: 'held' },
        ...{ approvedBy: ['Ann'], rejectedBy: [], missing: { by: 'finance', persons: 2 } },
      },
    });
    expect(await post(await sign('p', 'bob'))).toMatchObject({ status: 200, body: { approvedBy: ['Ann', 'Bob'] } });
    expect(await approvalsOf('p')).toEqual(['approve ann', 'approve bob']);
    const { connection } = rig.account.ledger;
    expect(await connection.redis.smembers(connection.keys.recheck)).toEqual(['p']);
    expect((await rig.run('activity')).stdout).toMatch(/ann.*p approved with a signature.*ticket 9/);
  });

  it('keeps a rejection, after which an approval of the same key is refused', async () => {
    await rig.hold('no');
    const approval = await sign('no', 'ann');
    const printed = await rig.run('reject', 'no', '--key', rig.files.ann, '--offline', '--reason', 'not ours');
    expect(await post(printed.stdout)).toMatchObject({ status: 200, body: { rejectedBy: ['Ann'], approvedBy: [] } });
    expect(await post(approval)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
    expect(await approvalsOf('no')).toEqual(['reject ann']);
  });

  it('counts what is missing by its own policy, where it has one', async () => {
    const policyFile = `${rig.keys.dir}/policy.yaml`;
    const text = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [Ann, Bob] }\nrules:\n  - { name: four-eyes, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }\n`;
    await writeFile(policyFile, text, { mode: 0o600 });
    const options = { keysFile, policyFiles: new Map([[platformId, policyFile]]) };
    const other = await start({ platformId, clock: CLOCK }, options);
    await rig.hold('counted');
    expect((await post(await sign('counted', 'ann'), {}, other)).body['missing']).toEqual({
      by: 'finance',
      persons: 1,
    });
    expect((await post(await sign('counted', 'bob'), {}, other)).body['missing']).toBeNull();
  });

  it('takes no body but one signed approval as JSON, and names what is wrong', async () => {
    await rig.hold('form');
    const right = await sign('form', 'ann');
    const wrong: readonly (readonly [name: string, body: unknown, error: RegExp])[] = [
      ['nothing', '', /payoutId: is missing.*signature: is missing/],
      ['no JSON', '{', /no JSON/],
      ['a text', '"yes"', /no JSON/],
      ['a list', [right], /approval: must be one signed approval, a JSON object/],
      ['an empty object', {}, /payoutId: is missing.*signature: is missing/],
      ['another decision', { ...right, decision: 'pay' }, /decision: .*pay/],
      ['no hash', { ...right, intent: 'x' }, /intent: must be the SHA-256 of an intent.*\(got "x"\)/],
      ['a field that is none', { ...right, amount: '1' }, /amount: is not a known field/],
      ['a reason of two lines', { ...right, reason: 'a\nb' }, /reason: must be one line/],
      ['a signature of a page', { ...right, signature: 'A'.repeat(5_000) }, /signature/],
    ];
    for (const [name, body, error] of wrong) {
      const reply = await post(body);
      expect({ name, status: reply.status, error: reply.body['error'] }).toEqual({
        ...{ name, status: 400, error: expect.stringMatching(error) },
      });
    }
    expect(await post({ ...right, payout: 'x'.repeat(17_000) })).toMatchObject({ status: 413 });
    expect(await approvalsOf('form')).toEqual([]);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx', ''])(
    'takes no body of type "%s": a form of another site can send it',
    async (type) => {
      await rig.hold(`type-${type}`.replace(/\W/g, '-'));
      const body = await sign(`type-${type}`.replace(/\W/g, '-'), 'ann');
      await expectRefused(String(body['payoutId']), async () => post(body, { 'content-type': type }), {
        ...{ status: 415, body: { error: expect.stringContaining('Content-Type: application/json') } },
      });
    },
  );

  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ])('takes nothing that a page of another site asks for: %j', async (headers) => {
    await rig.hold('foreign');
    const body = await sign('foreign', 'ann');
    await expectRefused('foreign', async () => post(body, headers), { status: 403, body: { code: 'CROSS_SITE' } });
  });

  it('takes it from a page of its own, as a browser sends it', async () => {
    await rig.hold('own');
    const headers = { origin: new URL(dashboard.url).origin, 'sec-fetch-site': 'same-origin' };
    expect(await post(await sign('own', 'ann'), headers)).toMatchObject({ status: 200 });
  });

  it('asks for the password before it reads anything', async () => {
    await rig.hold('secret');
    const body = JSON.stringify(await sign('secret', 'ann'));
    for (const authorization of ['', basicAuth('payouts', 'wrong')]) {
      const headers = { authorization, 'content-type': 'application/json' };
      const response = await dashboard.ask('/approvals', { method: 'POST', headers, body });
      expect(response.status).toBe(401);
    }
    expect(await approvalsOf('secret')).toEqual([]);
  });
});

describe('an approval that does not count is refused', () => {
  beforeAll(async () => {
    await rig.hold('q', { requestedBy: 'Rita' });
  });

  /** What nobody could sign through the command, which refuses it itself. */
  const forge = async (change: Body): Promise<Body> => ({ ...(await sign('q', 'ann')), ...change });

  it.each<[name: string, make: () => Promise<Body>, error: RegExp]>([
    ['of a key that is not known', async () => forge({ by: 'mallory' }), /"mallory" is not in the worker's keyring/],
    ['in the name of another', async () => forge({ by: 'rita' }), /signature of key "rita" is not over it/],
    ["of an operator's key", async () => forge({ by: 'olga' }), /has the role operator, not approver/],
    ["of a producer's key", async () => forge({ by: 'shop' }), /has the role producer, not approver/],
    [
      'of another intent',
      async () => forge({ intent: '0'.repeat(64) }),
      /about another payout, or the payout was signed again/,
    ],
    ['turned into a rejection', async () => forge({ decision: 'reject' }), /is not over it/],
    [
      'held longer than it was signed for',
      async () => forge({ expiresAt: '2099-01-01T00:00:00.000Z' }),
      /is not over it/,
    ],
    ['without its signature', async () => forge({ signature: '' }), /is not over it/],
  ])('%s', async (_, make, error) => {
    const body = await make();
    await expectRefused('q', async () => post(body), {
      ...{ status: 403, body: { code: 'NOT_VERIFIED', error: expect.stringMatching(error) } },
    });
  });

  it.each([
    ['of the person who requested the payout', 'rita', {}, /Rita asked for the payout, and cannot approve it/],
    ['of the person whose key signed the payout', 'sam', {}, /Sam asked for the payout, and cannot approve it/],
    ['that expired', 'ann', { at: time(-2), expiresAt: time(-1) }, /it expired at/],
    ['of the future', 'ann', { at: time(1), expiresAt: time(2) }, /which is in the future/],
    ['for longer than any holds', 'ann', { expiresAt: time(24 * 8) }, /signed for too long/],
    ['for another account', 'ann', { platformId: 1 }, /is not over it/],
  ] as const)('%s', async (_, key, change, error) => {
    const body = await signAs(key, 'q', change);
    await expectRefused('q', async () => post(body), {
      ...{ status: 403, body: { error: expect.stringMatching(error) } },
    });
  });

  it('by a second key of the same person: it is the same person', async () => {
    await rig.hold('twice');
    const second = await rig.keys.makeKey('ann-2');
    await changeKeyring((keys) => [...keys, { name: 'ann-2', role: 'approver', person: 'Ann', public: second.public }]);
    expect(await post(await signAs('ann', 'twice'))).toMatchObject({ status: 200, body: { approvedBy: ['Ann'] } });
    const again = await post(await signAs('ann-2', 'twice'));
    expect(again).toMatchObject({ status: 200, body: { person: 'Ann', approvedBy: ['Ann'] } });
  });

  it('of a key that was revoked since, without a restart', async () => {
    await rig.hold('late');
    const body = await sign('late', 'bob');
    const revoke = (isRevoked: boolean) => (keys: readonly KeyEntry[]) =>
      keys.map((key) => (key.name === 'bob' ? { ...key, revoked: isRevoked } : key));
    await changeKeyring(revoke(true));
    await expectRefused('late', async () => post(body), {
      ...{ status: 403, body: { error: expect.stringContaining('the key "bob" is revoked') } },
    });
    await changeKeyring(revoke(false));
    expect(await post(body)).toMatchObject({ status: 200 });
  });

  it('of a payout that is not held or queued, and of none', async () => {
    await rig.hold('gone');
    const body = await sign('gone', 'ann');
    await rig.run('cancel', 'gone', '--reason', 'over');
    await expectRefused('gone', async () => post(body), {
      ...{ status: 409, body: { code: 'CONFLICT', error: expect.stringContaining('Payout gone is cancelled') } },
    });
    expect(await post({ ...body, payoutId: 'none' })).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  });

  it('of a payout that somebody altered', async () => {
    await rig.hold('altered');
    const body = await sign('altered', 'ann');
    const { connection } = rig.account.ledger;
    await connection.redis.hset(connection.keys.payout('altered'), { amount: '1250' });
    await expectRefused('altered', async () => post(body), {
      ...{ status: 403, body: { error: expect.stringContaining('Payout altered is not verified') } },
    });
  });
});

describe('where approvals are taken', () => {
  it('not without a keyring: it says so', async () => {
    const plain = await start({ platformId, clock: CLOCK });
    await rig.hold('plain');
    const body = await sign('plain', 'ann');
    await expectRefused('plain', async () => post(body, {}, plain), {
      ...{ status: 404, body: { error: expect.stringContaining('has no keyring (PAYOUT_KEYS_FILE)') } },
    });
  });

  it('of several accounts at the path of each, and of that account only', async () => {
    const other = newPlatformId();
    const several = await start({ platformId: [platformId, other], clock: CLOCK }, { keysFile });
    await rig.hold('of-one');
    const body = JSON.stringify(await sign('of-one', 'ann'));
    const send = async (path: string): Promise<number> =>
      (await several.ask(path, { method: 'POST', headers: HEADERS, body })).status;
    expect(await send('/approvals')).toBe(405);
    expect(await send(`/accounts/${other}/approvals`)).toBe(404);
    expect(await approvalsOf('of-one')).toEqual([]);
    expect(await send(`/accounts/${platformId}/approvals`)).toBe(200);
    expect(await approvalsOf('of-one')).toEqual(['approve ann']);
  });

  it('nowhere else, and by no other method', async () => {
    const body = JSON.stringify(await sign('of-one', 'ann'));
    const before = await approvalsOf('of-one');
    const ways = [
      ['PUT', '/approvals'],
      ['PATCH', '/approvals'],
      ['DELETE', '/approvals'],
      ['POST', '/approvals/'],
      ['POST', '/Approvals'],
      ['POST', '/approvals/of-one'],
      ['POST', '/payouts/of-one'],
      ['POST', '/held'],
      ['POST', '/payouts'],
    ] as const;
    for (const [method, path] of ways) {
      const response = await dashboard.ask(path, { method, headers: HEADERS, body });
      expect({ method, path, status: response.status }).toEqual({ method, path, status: 405 });
    }
    expect(await approvalsOf('of-one')).toEqual(before);
  });
});
