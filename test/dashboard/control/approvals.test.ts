import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { openApprovalRig, type ApprovalRig } from '../../cli/support/approval-rig.js';
import type { KeyEntry } from '../../control/support/keys.js';
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
    const policy = `version: 1
platformId: "${platformId}"
default: send
groups: { finance: [Ann, Bob] }
rules:
  - { name: four-eyes, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }
`;
    await writeFile(policyFile, policy, { mode: 0o600 });
    const other = await start({ keysFile, policyFiles: new Map([[platformId, policyFile]]) });
    await rig.hold('counted');
    const [first, second] = [await post(await sign('counted', 'ann'), {}, other), await sign('counted', 'bob')];
    expect(first.body['missing']).toEqual({ by: 'finance', persons: 1 });
    expect((await post(second, {}, other)).body['missing']).toBeNull();
  });
});

describe('an upload is refused', () => {
  let right: Body;
  beforeAll(async () => {
    await rig.hold('form', { requestedBy: 'Rita' });
    right = await sign('form', 'ann');
  });

  it.each<[string, (right: Body) => unknown, number, RegExp]>([
    ['with nothing in it', () => '', 400, /payoutId: is missing.*signature: is missing/],
    ['that is no JSON', () => '{', 400, /no JSON/],
    ['of another decision', (body) => ({ ...body, decision: 'pay' }), 400, /decision: .*pay/],
    ['with a field that is none', (body) => ({ ...body, amount: '1' }), 400, /amount: is not a known field/],
    ['that is too long', (body) => ({ ...body, payout: 'x'.repeat(17_000) }), 413, /./],
    ['in the name of another', (body) => ({ ...body, by: 'rita' }), 403, /key "rita" is not over it/],
    ["of an operator's key", (body) => ({ ...body, by: 'olga' }), 403, /has the role operator, not approver/],
    ['of another intent', (body) => ({ ...body, intent: '0'.repeat(64) }), 403, /about another payout/],
    ['turned into a rejection', (body) => ({ ...body, decision: 'reject' }), 403, /is not over it/],
    ['of no payout', (body) => ({ ...body, payoutId: 'none' }), 404, /none not found/],
  ])('%s', async (_, change, status, error) => {
    const body = change(right);
    expect(await post(body)).toMatchObject({ status, body: { error: expect.stringMatching(error) } });
    expect(await approvalsOf('form')).toEqual([]);
  });

  it('as a form of another site can send it, and from a page of another site', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', ''])
      await expectRefused(right, 415, /Content-Type: application\/json/, { 'content-type': type });
    for (const headers of [
      ...[{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }],
      ...[{ origin: 'https://evil.example' }, { origin: 'null' }],
    ])
      expect((await expectRefused(right, 403, /./, headers)).body['code']).toBe('CROSS_SITE');
  });

  it('without the password, or where there is no keyring', async () => {
    for (const authorization of ['', basicAuth('payouts', 'wrong')]) {
      const init = { method: 'POST', headers: { ...JSON_POST, authorization }, body: JSON.stringify(right) };
      expect((await desk.ask('/approvals', init)).status).toBe(401);
    }
    expect(await approvalsOf('form')).toEqual([]);
    await expectRefused(right, 404, /has no keyring \(PAYOUT_KEYS_FILE\)/, {}, await start({}));
  });

  it('by any other method and path, also that of another account', async () => {
    const other = newPlatformId();
    const several = await start({ platformId: [platformId, other], keysFile });
    const send = async (to: RunningDashboard, request: string): Promise<number> => {
      const [method = '', path = ''] = request.split(' ');
      return (await to.ask(path, { method, headers: JSON_POST, body: JSON.stringify(right) })).status;
    };
    for (const request of [
      ...['PUT /approvals', 'DELETE /approvals', 'POST /approvals/', 'POST /Approvals'],
      ...['POST /approvals/form', 'POST /payouts/form', 'POST /held', 'POST /payouts'],
    ])
      expect([request, await send(desk, request)]).toEqual([request, 405]);
    expect(await send(several, 'POST /approvals')).toBe(405);
    expect(await send(several, `POST /accounts/${other}/approvals`)).toBe(404);
    expect(await approvalsOf('form')).toEqual([]);
    expect(await send(several, `POST /accounts/${platformId}/approvals`)).toBe(200);
    expect(await approvalsOf('form')).toEqual(['approve ann']);
  });

  it('of a payout that someone altered', async () => {
    await rig.hold('altered');
    const approval = await sign('altered', 'ann');
    const { redis, keys } = rig.account.ledger.connection;
    await redis.hset(keys.payout('altered'), { amount: '1250' });
    await expectRefused(approval, 403, /Payout altered is not verified/);
  });

  it('of a key that was revoked since, without a restart', async () => {
    await rig.hold('late');
    const [byBob, byAnn] = [await sign('late', 'bob'), await sign('late', 'ann')];
    const { keys } = JSON.parse(await readFile(keysFile, 'utf8')) as { keys: readonly KeyEntry[] };
    const changed = keys.map((key) => (key.name === 'bob' ? { ...key, revoked: true } : key));
    await writeFile(keysFile, JSON.stringify({ version: 1, keys: changed }));
    // The running dashboard reads the file again within a second.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await expectRefused(byBob, 403, /the key "bob" is revoked/);
    expect(await post(byAnn)).toMatchObject({ status: 200, body: { approvedBy: ['ann'] } });
  });
});
