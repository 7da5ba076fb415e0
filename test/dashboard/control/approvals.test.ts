import { createPrivateKey } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import type { Approval } from '../../../src/ledger/control-record.js';
import { openApprovalRig, type ApprovalRig } from '../../cli/support/approval-rig.js';
import { type KeyEntry, TEST_AUDIENCE } from '../../control/support/keys.js';
import { newPlatformId } from '../../support/account.js';
import { basicAuth, openDashboard, type RunningDashboard } from '../support/running-dashboard.js';

/** The one write of the dashboard. */

type Body = Readonly<Record<string, unknown>>;

interface Reply {
  readonly status: number;
  readonly body: Body;
}

const PASSWORD = 'a long password';
const JSON_POST = { authorization: basicAuth('payouts', PASSWORD), 'content-type': 'application/json' };

let rig: ApprovalRig;
let desk: RunningDashboard;
let platformId: number;
let keysFile: string;
const opened: RunningDashboard[] = [];

beforeAll(async () => {
  rig = await openApprovalRig();
  ({ platformId } = rig.account.ledger.connection);
  keysFile = rig.env['PAYOUT_KEYS_FILE'] ?? '';
  desk = await start({ keysFile, password: PASSWORD });
});

afterAll(async () => {
  await Promise.all(opened.map(async (each) => each.close()));
  await rig.close();
});

async function start(options: Parameters<typeof openDashboard>[1]): Promise<RunningDashboard> {
  const clock = { ...systemClock, advance: (): void => undefined };
  const started = await openDashboard({ platformId, clock }, options);
  opened.push(started);
  return started;
}

/** What `payouts approve --offline` prints. */
async function sign(payoutId: string, key: 'ann' | 'bob', ...args: string[]): Promise<Body> {
  const option = key === 'bob' ? '--ssh-key' : '--key';
  const printed = await rig.run('approve', payoutId, option, rig.files[key], '--yes', '--offline', ...args);
  expect(printed).toMatchObject({ code: 0 });
  return JSON.parse(printed.stdout) as Body;
}

const hours = (count: number): string => new Date(Date.now() + count * 3_600_000).toISOString();

/** Signed with a key, whatever it says: the command would refuse to. */
async function signAs(key: string, like: Body, { account = platformId, ...change }: Body = {}): Promise<Body> {
  const { payoutId, intent } = like;
  const times = { at: hours(0), expiresAt: hours(1) };
  const text = { audience: TEST_AUDIENCE, payoutId, intent, decision: 'approve', by: key, ...times, ...change };
  const privateKey = createPrivateKey(await readFile(`${rig.keys.dir}/${key}.pem`));
  return { ...text, signature: signText(formatApproval(account as number, text as unknown as Approval), privateKey) };
}

async function post(body: unknown, headers: Record<string, string> = {}, to = desk): Promise<Reply> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await to.ask('/approvals', { method: 'POST', headers: { ...JSON_POST, ...headers }, body: text });
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  return { status: response.status, body: (await response.json()) as Body };
}

async function approvalsOf(payoutId: string): Promise<string[]> {
  const { approvals = [] } = await rig.account.ledger.require(payoutId);
  return approvals.map(({ by, decision }) => `${decision} ${by}`);
}

/** Asserts that nothing of the payout changed meanwhile. */
async function expectRefused(body: Body, status: number, error: RegExp, ...how: [object?, RunningDashboard?]) {
  const { connection } = rig.account.ledger;
  const payoutId = String(body['payoutId']);
  const record = async (): Promise<unknown> => connection.redis.hgetall(connection.keys.payout(payoutId));
  const before = await record();
  const reply = await post(body, how[0] as Record<string, string>, how[1]);
  expect(reply).toMatchObject({ status, body: { error: expect.stringMatching(error) } });
  expect(await record()).toEqual(before);
  expect(await connection.redis.sismember(connection.keys.recheck, payoutId)).toBe(0);
  return reply;
}

describe('POST /approvals', () => {
  it('keeps what counts, says what is missing, and tells the worker', async () => {
    await rig.hold('p');
    expect(await post(await sign('p', 'ann', '--reason', 'ticket 9'))).toMatchObject({
      status: 200,
      body: {
        ...{ payoutId: 'p', decision: 'approve', by: 'ann', person: 'ann', state: 'held' },
        ...{ approvedBy: ['ann'], rejectedBy: [], missing: { by: 'finance', persons: 2 } },
      },
    });
    const own = { origin: new URL(desk.url).origin, 'sec-fetch-site': 'same-origin' };
    const second = await post(await sign('p', 'bob'), own);
    expect(second).toMatchObject({ status: 200, body: { approvedBy: ['ann', 'bob'] } });
    expect(await approvalsOf('p')).toEqual(['approve ann', 'approve bob']);
    const { connection } = rig.account.ledger;
    expect(await connection.redis.smembers(connection.keys.recheck)).toEqual(['p']);
    expect((await rig.run('activity')).stdout).toMatch(/ann.*p approved with a signature.*ticket 9/);
  });

  it('keeps a rejection, after which an approval of the same key is refused', async () => {
    await rig.hold('no');
    const approval = await sign('no', 'ann');
    const rejection = await rig.run('reject', 'no', '--key', rig.files.ann, '--offline', '--reason', 'not ours');
    expect(await post(rejection.stdout)).toMatchObject({ status: 200, body: { rejectedBy: ['ann'], approvedBy: [] } });
    expect(await post(approval)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
    expect(await approvalsOf('no')).toEqual(['reject ann']);
  });

  it('counts what is missing by its own policy, where it has one', async () => {
    const policyFile = `${rig.keys.dir}/policy.yaml`;
    const rule = 'when: { paymentId: ["7"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } }';
    const head = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [Ann, Bob] }\n`;
    await writeFile(policyFile, `${head}rules:\n  - { name: four-eyes, ${rule} }\n`, { mode: 0o600 });
    const other = await start({ keysFile, policyFiles: new Map([[platformId, policyFile]]) });
    await rig.hold('counted');
    const [first, second] = [await post(await sign('counted', 'ann'), {}, other), await sign('counted', 'bob')];
    expect(first.body['missing']).toEqual({ by: 'finance', persons: 1 });
    expect((await post(second, {}, other)).body['missing']).toBeNull();
  });
});

describe('what is refused by its form', () => {
  let right: Body;
  beforeAll(async () => {
    await rig.hold('form');
    right = await sign('form', 'ann');
  });

  it.each<[string, (right: Body) => unknown, RegExp]>([
    ['nothing', () => '', /payoutId: is missing.*signature: is missing/],
    ['no JSON', () => '{', /no JSON/],
    ['a text', () => '"yes"', /no JSON/],
    ['a list', (body) => [body], /approval: must be one signed approval, a JSON object/],
    ['another decision', (body) => ({ ...body, decision: 'pay' }), /decision: .*pay/],
    ['no hash', (body) => ({ ...body, intent: 'x' }), /intent: must be the SHA-256 of an intent.*\(got "x"\)/],
    ['a field that is none', (body) => ({ ...body, amount: '1' }), /amount: is not a known field/],
    ['a reason of two lines', (body) => ({ ...body, reason: 'a\nb' }), /reason: must be one line/],
    ['a signature of a page', (body) => ({ ...body, signature: 'A'.repeat(5_000) }), /signature/],
  ])('%s, with what is wrong', async (_, change, error) => {
    const reply = await post(change(right));
    expect(reply).toMatchObject({ status: 400, body: { error: expect.stringMatching(error) } });
    expect(await approvalsOf('form')).toEqual([]);
  });

  it('a body that is too long', async () => {
    expect(await post({ ...right, payout: 'x'.repeat(17_000) })).toMatchObject({ status: 413 });
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx', ''])(
    'a body of type "%s", which a form of another site can send',
    async (type) => {
      await expectRefused(right, 415, /Content-Type: application\/json/, { 'content-type': type });
    },
  );

  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ])('what a page of another site asks for: %j', async (headers) => {
    expect((await expectRefused(right, 403, /./, headers)).body['code']).toBe('CROSS_SITE');
  });

  it('everything without the password', async () => {
    for (const authorization of ['', basicAuth('payouts', 'wrong')]) {
      const headers = { ...JSON_POST, authorization };
      const init = { method: 'POST', headers, body: JSON.stringify(right) };
      expect((await desk.ask('/approvals', init)).status).toBe(401);
    }
    expect(await approvalsOf('form')).toEqual([]);
  });

  it('everything where there is no keyring', async () => {
    await expectRefused(right, 404, /has no keyring \(PAYOUT_KEYS_FILE\)/, {}, await start({}));
  });

  it.each([
    ...['PUT /approvals', 'PATCH /approvals', 'DELETE /approvals', 'POST /approvals/', 'POST /Approvals'],
    ...['POST /approvals/form', 'POST /payouts/form', 'POST /held', 'POST /payouts'],
  ])('%s', async (request) => {
    const [method = '', path = ''] = request.split(' ');
    const response = await desk.ask(path, { method, headers: JSON_POST, body: JSON.stringify(right) });
    expect(response.status).toBe(405);
    expect(await approvalsOf('form')).toEqual([]);
  });

  it('what is posted at the path of another account', async () => {
    const other = newPlatformId();
    const several = await start({ platformId: [platformId, other], keysFile });
    const send = async (path: string): Promise<number> =>
      (await several.ask(path, { method: 'POST', headers: JSON_POST, body: JSON.stringify(right) })).status;
    expect(await send('/approvals')).toBe(405);
    expect(await send(`/accounts/${other}/approvals`)).toBe(404);
    expect(await approvalsOf('form')).toEqual([]);
    expect(await send(`/accounts/${platformId}/approvals`)).toBe(200);
    expect(await approvalsOf('form')).toEqual(['approve ann']);
  });
});

describe('an approval that does not count is refused', () => {
  let right: Body;
  beforeAll(async () => {
    await rig.hold('q', { requestedBy: 'Rita' });
    right = await sign('q', 'ann');
  });

  it.each<[string, Body, RegExp]>([
    ['in the name of another', { by: 'rita' }, /signature of key "rita" is not over it/],
    ["of an operator's key", { by: 'olga' }, /has the role operator, not approver/],
    ['of another intent', { intent: '0'.repeat(64) }, /about another payout, or the payout was signed again/],
    ['turned into a rejection', { decision: 'reject' }, /is not over it/],
    ['without its signature', { signature: '' }, /is not over it/],
  ])('%s', async (_, change, error) => {
    expect((await expectRefused({ ...right, ...change }, 403, error)).body['code']).toBe('NOT_VERIFIED');
  });

  it.each<[string, string, Body, RegExp]>([
    ['of the person who requested the payout', 'rita', {}, /rita asked for the payout, and cannot approve it/],
    ['of the person whose key signed the payout', 'sam', {}, /sam asked for the payout, and cannot approve it/],
    ['that expired', 'ann', { at: hours(-2), expiresAt: hours(-1) }, /it expired at/],
    ['for another account', 'ann', { account: 1 }, /is not over it/],
  ])('%s', async (_, key, change, error) => {
    await expectRefused(await signAs(key, right, change), 403, error);
  });

  it('of a payout that is not held or queued, of none, and of one that someone altered', async () => {
    for (const payoutId of ['gone', 'altered']) await rig.hold(payoutId);
    const [gone, altered] = [await sign('gone', 'ann'), await sign('altered', 'ann')];
    await rig.run('cancel', 'gone', '--reason', 'over');
    expect((await expectRefused(gone, 409, /Payout gone is cancelled/)).body['code']).toBe('CONFLICT');
    expect(await post({ ...gone, payoutId: 'none' })).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    const { redis, keys } = rig.account.ledger.connection;
    await redis.hset(keys.payout('altered'), { amount: '1250' });
    await expectRefused(altered, 403, /Payout altered is not verified/);
  });

  it('of a key that was revoked since, and counts once for two keys of one person, without a restart', async () => {
    await rig.hold('late');
    const [byBob, byAnn] = [await sign('late', 'bob'), await sign('late', 'ann')];
    const second = await rig.keys.makeKey('ann-2');
    const { keys } = JSON.parse(await readFile(keysFile, 'utf8')) as { keys: readonly KeyEntry[] };
    const changed = [
      ...keys.map((key) => (key.name === 'bob' ? { ...key, revoked: true } : key)),
      { name: 'ann-2', role: 'approver', person: 'Ann', public: second.public },
    ];
    await writeFile(keysFile, JSON.stringify({ version: 1, keys: changed }));
    // The running dashboard reads the file again within a second.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await expectRefused(byBob, 403, /the key "bob" is revoked/);
    expect(await post(byAnn)).toMatchObject({ status: 200, body: { approvedBy: ['ann'] } });
    const again = await post(await signAs('ann-2', byAnn));
    expect(again).toMatchObject({ status: 200, body: { person: 'ann', approvedBy: ['ann'] } });
  });
});
