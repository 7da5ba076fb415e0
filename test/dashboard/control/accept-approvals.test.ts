import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { newPlatformId } from '../../support/account.js';
import { basicAuth } from '../support/running-dashboard.js';
import { POST_HEADERS, PostingRig } from '../support/posting-rig.js';

/** The one write of the dashboard. */

let desk: PostingRig;

beforeAll(async () => {
  desk = await PostingRig.open();
});

afterAll(async () => desk.close());

describe('POST /approvals', () => {
  it('keeps what counts, says what is missing, and tells the worker', async () => {
    await desk.rig.hold('p');
    const first = await desk.post(await desk.sign('p', 'ann', '--reason', 'ticket 9'));
    expect(first).toMatchObject({
      status: 200,
      body: {
        ...{ payoutId: 'p', decision: 'approve', by: 'ann', person: 'ann', state: 'held' },
        ...{ approvedBy: ['ann'], rejectedBy: [], missing: { by: 'finance', persons: 2 } },
      },
    });
    expect(await desk.post(await desk.sign('p', 'bob'))).toMatchObject({
      status: 200,
      body: { approvedBy: ['ann', 'bob'] },
    });
    expect(await desk.approvalsOf('p')).toEqual(['approve ann', 'approve bob']);
    const { connection } = desk.rig.account.ledger;
    expect(await connection.redis.smembers(connection.keys.recheck)).toEqual(['p']);
    expect((await desk.rig.run('activity')).stdout).toMatch(/ann.*p approved with a signature.*ticket 9/);
  });

  it('keeps a rejection, after which an approval of the same key is refused', async () => {
    await desk.rig.hold('no');
    const approval = await desk.sign('no', 'ann');
    const printed = await desk.rig.run(
      'reject',
      'no',
      '--key',
      desk.rig.files.ann,
      '--offline',
      '--reason',
      'not ours',
    );
    expect(await desk.post(printed.stdout)).toMatchObject({
      status: 200,
      body: { rejectedBy: ['ann'], approvedBy: [] },
    });
    expect(await desk.post(approval)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
    expect(await desk.approvalsOf('no')).toEqual(['reject ann']);
  });

  it('counts what is missing by its own policy, where it has one', async () => {
    const policyFile = `${desk.rig.keys.dir}/policy.yaml`;
    const text = `version: 1\nplatformId: "${desk.platformId}"\ndefault: send\ngroups: { finance: [Ann, Bob] }\nrules:\n  - { name: four-eyes, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }\n`;
    await writeFile(policyFile, text, { mode: 0o600 });
    const options = { keysFile: desk.keysFile, policyFiles: new Map([[desk.platformId, policyFile]]) };
    const other = await desk.start(options);
    await desk.rig.hold('counted');
    expect((await desk.post(await desk.sign('counted', 'ann'), {}, other)).body['missing']).toEqual({
      by: 'finance',
      persons: 1,
    });
    expect((await desk.post(await desk.sign('counted', 'bob'), {}, other)).body['missing']).toBeNull();
  });

  it('takes no body but one signed approval as JSON, and names what is wrong', async () => {
    await desk.rig.hold('form');
    const right = await desk.sign('form', 'ann');
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
      const reply = await desk.post(body);
      expect({ name, status: reply.status, error: reply.body['error'] }).toEqual({
        ...{ name, status: 400, error: expect.stringMatching(error) },
      });
    }
    expect(await desk.post({ ...right, payout: 'x'.repeat(17_000) })).toMatchObject({ status: 413 });
    expect(await desk.approvalsOf('form')).toEqual([]);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx', ''])(
    'takes no body of type "%s": a form of another site can send it',
    async (type) => {
      await desk.rig.hold(`type-${type}`.replace(/\W/g, '-'));
      const body = await desk.sign(`type-${type}`.replace(/\W/g, '-'), 'ann');
      await desk.expectRefused(String(body['payoutId']), async () => desk.post(body, { 'content-type': type }), {
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
    await desk.rig.hold('foreign');
    const body = await desk.sign('foreign', 'ann');
    await desk.expectRefused('foreign', async () => desk.post(body, headers), {
      status: 403,
      body: { code: 'CROSS_SITE' },
    });
  });

  it('takes it from a page of its own, as a browser sends it', async () => {
    await desk.rig.hold('own');
    const headers = { origin: new URL(desk.dashboard.url).origin, 'sec-fetch-site': 'same-origin' };
    expect(await desk.post(await desk.sign('own', 'ann'), headers)).toMatchObject({ status: 200 });
  });

  it('asks for the password before it reads anything', async () => {
    await desk.rig.hold('secret');
    const body = JSON.stringify(await desk.sign('secret', 'ann'));
    for (const authorization of ['', basicAuth('payouts', 'wrong')]) {
      const headers = { authorization, 'content-type': 'application/json' };
      const response = await desk.dashboard.ask('/approvals', { method: 'POST', headers, body });
      expect(response.status).toBe(401);
    }
    expect(await desk.approvalsOf('secret')).toEqual([]);
  });
});

describe('where approvals are taken', () => {
  it('not without a keyring: it says so', async () => {
    const plain = await desk.start({});
    await desk.rig.hold('plain');
    const body = await desk.sign('plain', 'ann');
    await desk.expectRefused('plain', async () => desk.post(body, {}, plain), {
      ...{ status: 404, body: { error: expect.stringContaining('has no keyring (PAYOUT_KEYS_FILE)') } },
    });
  });

  it('of several accounts at the path of each, and of that account only', async () => {
    const other = newPlatformId();
    const { platformId } = desk;
    const several = await desk.start({ platformId: [platformId, other], keysFile: desk.keysFile });
    await desk.rig.hold('of-one');
    const body = JSON.stringify(await desk.sign('of-one', 'ann'));
    const send = async (path: string): Promise<number> =>
      (await several.ask(path, { method: 'POST', headers: POST_HEADERS, body })).status;
    expect(await send('/approvals')).toBe(405);
    expect(await send(`/accounts/${other}/approvals`)).toBe(404);
    expect(await desk.approvalsOf('of-one')).toEqual([]);
    expect(await send(`/accounts/${platformId}/approvals`)).toBe(200);
    expect(await desk.approvalsOf('of-one')).toEqual(['approve ann']);
  });

  it('nowhere else, and by no other method', async () => {
    const body = JSON.stringify(await desk.sign('of-one', 'ann'));
    const before = await desk.approvalsOf('of-one');
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
      const response = await desk.dashboard.ask(path, { method, headers: POST_HEADERS, body });
      expect({ method, path, status: response.status }).toEqual({ method, path, status: 405 });
    }
    expect(await desk.approvalsOf('of-one')).toEqual(before);
  });
});
