import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Finding } from '../../../src/cli/audit/finding.js';
import { verifySend } from '../../../src/cli/audit/verify-send.js';
import { hashText } from '../../../src/control/intents/statement.js';
import type { JournalLine, SendLine } from '../../../src/journal/journal-line.js';
import { toChainedLines } from '../../../src/journal/line-chain.js';
import { readItems } from '../../../src/journal/journal-reader.js';
import { connectLedger, type LedgerConnection } from '../../../src/ledger/ledger-connection.js';
import { readWorkers } from '../../../src/ledger/reads/workers.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { readEvents, type PayoutEvent } from '../../../src/producer/events/payout-events.js';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { openTestKeys, writeKeyring, type TestKeys } from '../../control/support/key-files.js';
import { type KeyEntry, keyringOf, TEST_AUDIENCE } from '../../control/support/keys.js';
import { lastHash } from '../../journal/support/journal-folder.js';
import { until } from '../../support/until.js';
import type { CliResult } from '../../support/cli.js';
import { openWorld, type PayoutWorld } from '../../worker/support/payout-world.js';
import { endAllWorkers } from '../../worker/support/worker-process.js';
import { runInProcess } from '../support/in-process.js';

/**
 * A real worker process with keys and a policy has sent payouts; then someone writes to Redis, or to the journal. What he changed
 * is put back after each test.
 */

const WAIT = { timeoutMs: 40_000 };
const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const OTHER_WALLET = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8';

let world: PayoutWorld;
let keys: TestKeys;
let keyring: KeyEntry[];
let env: Record<string, string>;
let ledger: LedgerConnection;
let journalFile: string;
let policyFile: string;
let policyHash: string | undefined;
const journalId = async (): Promise<string> =>
  (JSON.parse((await readFile(journalFile, 'utf8')).split('\n')[0] ?? '') as { journalId: string }).journalId;

const run = async (...args: string[]): Promise<CliResult> => runInProcess(args, env);

async function verify(
  ...args: string[]
): Promise<{ code: number | null; findings: Finding[]; report: Record<string, unknown> }> {
  const { code, stdout, stderr } = await run('audit', 'verify', '--json', ...args);
  if (stdout === '') throw new Error(stderr);
  const report = JSON.parse(stdout) as Record<string, unknown>;
  return { code, findings: report['findings'] as Finding[], report };
}

/** What it found, as `payoutId kind`, with the exit code. */
async function found(...args: string[]): Promise<string[]> {
  const { code, findings } = await verify(...args);
  return [`exit ${code}`, ...findings.map(({ payoutId, kind }) => `${payoutId} ${kind}`).sort()];
}

const record = (payoutId: string): string => ledger.keys.payout(payoutId);
const events = async (type: string): Promise<PayoutEvent[]> =>
  (await readEvents(ledger, { sinceMs: 0 }, 1_000)).filter((event) => event.type === type);

/** Puts back what a test changed. */
const undo: (() => Promise<unknown>)[] = [];

async function keepRecord(payoutId: string): Promise<void> {
  const before = await ledger.redis.hgetall(record(payoutId));
  undo.push(async () => {
    await ledger.redis.del(record(payoutId));
    if (Object.keys(before).length > 0) await ledger.redis.hset(record(payoutId), before);
  });
}

async function alter(payoutId: string, ...fields: readonly [string, string][]): Promise<void> {
  await keepRecord(payoutId);
  await ledger.redis.hset(record(payoutId), Object.fromEntries(fields));
}

beforeAll(async () => {
  world = await openWorld();
  keys = await openTestKeys();
  const [shop, ann, bob] = [await keys.makeKey('shop'), await keys.makeKey('ann'), await keys.makeKey('bob')];
  const worker = await keys.makeKey('worker');
  keyring = [
    { name: 'shop', role: 'producer', person: 'Sam', public: shop.public },
    { name: 'ann', role: 'approver', person: 'Ann', public: ann.public },
    { name: 'bob', role: 'approver', person: 'Bob', public: bob.public },
    { name: 'worker', role: 'worker', person: 'Worker', public: worker.public },
  ];
  const { platformId, redisUrl, dir } = world;
  const [keysFile, journalDir] = [await keys.writeKeyring(...keyring), join(dir, 'journal')];
  policyFile = join(dir, 'policy.yaml');
  await writeFile(
    policyFile,
    `{ version: 1, platformId: ${platformId}, default: send, groups: { finance: [Ann, Bob] },
      approvals: { requestedBy: any }, rules: [
      { name: four-eyes, cap: { amount: 100 }, when: { paymentId: [6] }, over: { approve: { by: finance, quorum: 2 } } },
      { name: day, cap: { amount: 100000, within: 24h }, when: { paymentId: [6] }, over: wait } ] }`,
    { mode: 0o600 },
  );
  env = {
    ...{ REDIS_URL: redisUrl, GATEWAY_PLATFORM_ID: String(platformId), PAYOUT_KEYS_FILE: keysFile },
    SEND_JOURNAL_DIR: journalDir,
  };
  journalFile = join(journalDir, `${platformId}.journal`);
  ledger = connectLedger(connectRedis(redisUrl, 'commands'), platformId);
  const sending = world.startWorker({
    environment: {
      ...{ PAYOUT_KEYS_FILE: keysFile, PAYOUT_POLICY_FILE: policyFile },
      ...{ PAYOUT_WORKER_KEY_FILE: worker.file, PAYOUT_WORKER_KEY_NAME: 'worker' },
    },
  });
  await until(`it sends:\n${sending.log()}`, () => sending.log().includes('acquired sender lease'));
  const producer = new PayoutProducer({
    redisUrl,
    platformId,
    audience: TEST_AUDIENCE,
    signingKey: { name: 'shop', privateKey: shop.privateKey },
  });
  const about = { paymentId: 6, addressTo: WALLET, requestedBy: 'Pat', reference: '=invoice 5' };
  await producer.enqueueMany([
    { ...about, payoutId: 'large', amount: '250' },
    { ...about, payoutId: 'small', amount: '12.5', metadata: { order: 5 } },
  ]);
  await until('it is held', async () => (await producer.get('large'))?.state === 'held');
  for (const file of [ann.file, bob.file]) {
    const approved = await run('approve', 'large', '--key', file, '--yes', '--reason', 'seen');
    if (approved.code !== 0) throw new Error(approved.stderr);
  }
  // `waitFor` returns on what is held.
  await until('the worker has seen the approvals', async () => (await producer.get('large'))?.state !== 'held');
  for (const payoutId of ['small', 'large']) {
    expect(await producer.waitFor(payoutId, WAIT)).toMatchObject({ state: 'completed' });
  }
  await producer.close();
  policyHash = (JSON.parse((await run('policy', 'check', policyFile, '--json')).stdout) as { hash: string }).hash;
  const reported = async (): Promise<string | undefined> => (await readWorkers(ledger))[0]?.journalHead?.hash;
  await until('its report has the head', async () => (await reported()) !== undefined);
  expect(await reported()).toBe((await events('journal_head'))[0]?.hash);
  sending.kill('SIGTERM');
  expect(await sending.ended).toBe(0);
  expect(sending.log()).toContain('head of the send journal');
}, 90_000);

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

afterAll(async () => {
  await endAllWorkers();
  await closeRedis(ledger.redis);
  await world.close();
  await keys.close();
});

it('finds nothing wrong with what a worker did, and says what it compared', async () => {
  const { code, findings, report } = await verify();
  expect({ code, findings }).toEqual({ code: 0, findings: [] });
  expect(report).toMatchObject({
    ...{ sends: 2, faults: [], others: [], unsigned: 0, revokedKeys: {} },
    ledger: { compared: true, sends: 2, removed: 0, before: 0, onWord: 0, otherJournals: [] },
  });
  // Its quorums are asked for too.
  env['PAYOUT_POLICY_FILE'] = policyFile;
  expect(await verify()).toMatchObject({ code: 0, findings: [] });
  delete env['PAYOUT_POLICY_FILE'];
  const { stdout } = await run('audit', 'verify');
  expect(stdout).toMatch(/\nsignatures +2 signed sends: 2 verified\nledger +2 sends compared\nfindings +none\n$/);
});

it('the worker told which policy it loaded, and where the journal began and ended', async () => {
  const heads = await events('journal_head');
  const { report } = await verify();
  expect(heads).toHaveLength(2);
  expect(heads.at(-1)).toMatchObject({ hash: report['head'], reason: `journal ${await journalId()}, send number 2` });
  expect(await events('policy_loaded')).toEqual([
    expect.objectContaining({ hash: policyHash, reason: expect.stringMatching(/^policy\.yaml, by .+:\d+$/) }),
  ]);
  expect(policyHash).toMatch(/^[0-9a-f]{64}$/);
});

describe('a journal', () => {
  async function cutOff(lines: number): Promise<void> {
    await copyFile(journalFile, `${journalFile}-kept`);
    undo.push(async () => copyFile(`${journalFile}-kept`, journalFile));
    const texts = (await readFile(journalFile, 'utf8')).trimEnd().split('\n');
    await writeFile(journalFile, `${texts.slice(0, -lines).join('\n')}\n`);
  }

  it('whose end was cut off is found by the head that was told, with and without Redis', async () => {
    const head = String((await events('journal_head')).at(-1)?.hash);
    expect(await found('--offline', '--head', head)).toEqual(['exit 0']);
    await cutOff(1);
    // Its last line was the outcome of a send.
    expect(await found()).toEqual(['exit 5', ' head', 'large state']);
    expect(await found('--offline')).toEqual(['exit 0']);
    expect(await found('--offline', '--head', head)).toEqual(['exit 5']);
    const { stdout } = await run('audit', 'verify');
    expect(stdout).toMatch(
      new RegExp(
        `journal: a worker published at .* that the journal ends with ${head}, .* its end was cut off\\. Put the files back`,
      ),
    );
  });

  it('that lost sends is found by the ledger, where the event is gone too', async () => {
    await cutOff(2);
    const [last] = (await events('journal_head')).slice(-1);
    expect(await ledger.redis.xdel(ledger.keys.events, last?.eventId ?? '')).toBe(1);
    expect(await found()).toEqual(['exit 5', 'large not_in_journal']);
  });
});

describe('a record that someone altered in Redis', () => {
  it.each([
    ['its address', 'addressTo', OTHER_WALLET, 'altered'],
    ['its amount', 'amount', '9', 'altered'],
    ['its reference', 'reference', 'other', 'signature'],
    ['its txhash', 'txhash', 'another', 'receipt,txhash'],
    ['its state, to rejected', 'state', 'rejected', 'state'],
    ['its state, to cancelled', 'state', 'cancelled', 'state'],
    ['its state, to failed', 'state', 'failed', 'receipt'],
    ['its signature', 'sig', 'A'.repeat(64), 'signature'],
    ['its state, to none that there is', 'state', 'paid', 'unreadable'],
  ])('is found: %s', async (_name, field, value, kinds) => {
    await alter('small', [field, value]);
    const expected = kinds.split(',').map((kind) => `small ${kind}`);
    const all = await found();
    expect(all[0]).toBe('exit 5');
    expect(all).toEqual(expect.arrayContaining(expected));
    expect(all.slice(1).every((each) => each.startsWith('small '))).toBe(true);
  });

  it('is found where it is set back as if it had never been sent', async () => {
    await alter('small', ['state', 'queued'], ['attempt', '0']);
    expect(await found()).toEqual(['exit 5', 'small not_in_ledger']);
    await ledger.redis.del(record('small'));
    expect(await found()).toEqual(['exit 5', 'small not_in_ledger']);
  });

  it('is named, with what to do', async () => {
    await alter('small', ['addressTo', OTHER_WALLET]);
    const { stdout } = await run('audit', 'verify');
    expect(stdout).toMatch(
      new RegExp(
        `\nfindings +\\d\n[^]*small, attempt 1: addressTo was ${WALLET} when it was sent, and is ${OTHER_WALLET} in the ledger\\. The journal says`,
      ),
    );
  });
});

it('a payment that someone invented is found, whether an index names it or not', async () => {
  const at = String(Date.now());
  const given = { paymentId: '6', amount: '5', addressTo: WALLET, txhash: 'h', n: '1', h0: `${at}\tcompleted` };
  await alter('invented', ...Object.entries({ ...given, state: 'completed', attempt: '1', tokens: 'abcdefgh' }));
  expect(await found()).toEqual(['exit 5', 'invented not_in_journal']);
  await alter('invented', ['attempt', '0'], ['state', 'rejected']);
  expect(await found()).toEqual(['exit 5', 'invented not_in_journal']);
});

it('a send that only the stream of spends has is found, and one that it counts as less', async () => {
  const [first] = await ledger.redis.xrange(ledger.keys.spent, '-', '+', 'COUNT', 1);
  const spend = JSON.parse(first?.[1]?.[7] ?? '') as Record<string, unknown>;
  const add = async (changes: object): Promise<void> => {
    const text = JSON.stringify({ ...spend, ...changes });
    const id = await ledger.redis.xadd(
      ledger.keys.spent,
      '*',
      'token',
      'x',
      'kind',
      'begun',
      'at',
      String(Date.now()),
      'spend',
      text,
    );
    undo.push(async () => ledger.redis.xdel(ledger.keys.spent, id ?? ''));
  };
  await add({ id: 'ghost 1 x', payoutId: 'ghost', attempt: 1 });
  expect(await found()).toEqual(['exit 5', 'ghost spend']);
  await add({ amount: '0.1' });
  expect(await found()).toEqual(['exit 5', 'ghost spend', `${String(spend['payoutId'])} spend`].sort());
});

async function lineOf(payoutId: string): Promise<SendLine> {
  for await (const item of readItems(journalFile)) if ('payoutId' in item && item.payoutId === payoutId) return item;
  throw new Error(`no send of ${payoutId}`);
}

describe('a payout that Redis says was removed', () => {
  /** As someone who writes to Redis does it. */
  async function remove(payoutId: string, state: string): Promise<void> {
    await keepRecord(payoutId);
    const bucket = ledger.keys.removedBucket(payoutId);
    await ledger.redis.multi().del(record(payoutId)).hset(bucket, payoutId, state).exec();
    undo.push(async () => ledger.redis.hdel(bucket, payoutId));
  }

  it('is found where the journal says that it was paid, and it was removed as rejected', async () => {
    await remove('small', 'rejected');
    expect(await found()).toEqual(['exit 5', 'small state']);
    env['PAYOUT_RETENTION_DAYS'] = '1';
    undo.push(async () => Promise.resolve(delete env['PAYOUT_RETENTION_DAYS']));
    const { findings, report } = await verify();
    expect(findings[0]?.message).toMatch(
      /^the journal says accepted, .* the ledger says that it was removed as rejected$/,
    );
    expect(report).toMatchObject({ verified: 1, notVerifiable: 0, ledger: { sends: 1, removed: 1 } });
  });

  it('is found where retention is not set, or cannot have come to it', async () => {
    await remove('small', 'completed');
    expect(await found()).toEqual(['exit 5', 'small removed']);
    env['PAYOUT_RETENTION_DAYS'] = '1';
    undo.push(async () => Promise.resolve(delete env['PAYOUT_RETENTION_DAYS']));
    expect(await found()).toEqual(['exit 5', 'small removed']);
    const { stdout } = await run('audit', 'verify');
    expect(stdout).toMatch(/removed as completed; PAYOUT_RETENTION_DAYS is 1, and the journal has its send of /);
  });

  it('is shown by `payouts get` as the journal has it', async () => {
    await remove('small', 'rejected');
    const { code, stderr } = await run('get', 'small');
    expect(code).toBe(3);
    expect(stderr).toMatch(/Payout small was rejected, and PAYOUT_RETENTION_DAYS removed it from Redis/);
    expect(stderr).toMatch(
      /The send journal has attempt 1 of small: 12\.5 of payment_id 6 to \S+ at .* UTC, accepted, txhash [0-9a-f]{64}\./,
    );
  });

  it('is found where the journal has two transactions of it, whatever the record says', async () => {
    const before = await readFile(journalFile, 'utf8');
    undo.push(async () => writeFile(journalFile, before));
    const send = await lineOf('small');
    const { at, token, request, epoch, sends, signed } = send;
    const again = { payoutId: 'small', attempt: 2, token: 'again' };
    const lines: JournalLine[] = [
      { ...again, epoch, sends: sends + 2, after: { sends, token }, request, at: at + 5, signed },
      { ...again, outcome: { kind: 'accepted', txhash: 'second' }, at: at + 6 },
    ];
    await writeFile(journalFile, before + toChainedLines(lines, lastHash(before)));
    await remove('small', 'completed');
    env['PAYOUT_RETENTION_DAYS'] = '1';
    undo.push(async () => Promise.resolve(delete env['PAYOUT_RETENTION_DAYS']));
    expect(await found()).toContain('small sent_again');
    expect(await found('--offline')).toContain('small sent_again');
  });

  it('is shown by `payouts get --txhash` as the journal has it', async () => {
    const txhash = (await ledger.redis.hget(record('small'), 'txhash')) ?? '';
    await remove('small', 'rejected');
    const { code, stderr } = await run('get', '--txhash', txhash.toUpperCase());
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/No payout has txhash \w+\. The send journal has attempt 1 of small: .* accepted, txhash /),
    ]);
  });

  it('is shown by `payouts get` where only the record was deleted', async () => {
    await keepRecord('small');
    await ledger.redis.del(record('small'));
    const { code, stderr } = await run('get', 'small');
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/Payout small not found\. The send journal has attempt 1 .* Redis has lost its record/),
    ]);
  });
});

describe('the signature in the journal', () => {
  it('is verified without the record, also without Redis; approvals are in the record alone', async () => {
    const { code, report } = await verify('--offline');
    expect({ code, ...report }).toMatchObject({ code: 0, verified: 1, notVerifiable: 1 });
    const { stdout } = await run('audit', 'verify', '--offline');
    expect(stdout).toMatch(/\nsignatures +2 signed sends: 1 verified; 1 not verifiable, because the record is gone/);
    expect((await lineOf('small')).signed?.proof).toEqual({
      ...{ signature: expect.stringMatching(/^[\w-]{86}$/), requestedBy: 'Pat', reference: '=invoice 5' },
      ...{ metadataHash: hashText('{"order":5}'), audience: 'test' },
    });
  });

  it.each([
    ['another signature', { signature: 'A'.repeat(86) }, /its signature in the journal does not hold/],
    ['another person', { requestedBy: 'ann' }, /stands for another intent than the one that it names/],
    ['none, of a version that journaled none', undefined, undefined],
  ])('is judged: %s', async (_, change, message) => {
    const { signed, ...send } = await lineOf('small');
    if (signed?.proof === undefined) throw new Error('it is signed');
    const { proof, ...rest } = signed;
    const changed = { ...send, signed: { ...rest, ...(change && { proof: { ...proof, ...change } }) } };
    const context = { platformId: world.platformId, keyring: keyringOf(...keyring) };
    const { findings, isVerified } = verifySend(changed, undefined, context);
    expect({ isVerified, messages: findings.map((finding) => finding.message) }).toEqual({
      ...{ isVerified: false, messages: message === undefined ? [] : [expect.stringMatching(message)] },
    });
  });
});

describe('approvals', () => {
  it('that were removed are found', async () => {
    await keepRecord('large');
    await ledger.redis.hdel(record('large'), 'approval:bob');
    expect(await found()).toEqual(['exit 5', 'large approval']);
    await ledger.redis.hdel(record('large'), 'approval:ann');
    expect(await found()).toEqual(['exit 5', 'large approval', 'large approval']);
  });

  it('that were altered are found', async () => {
    const text = (await ledger.redis.hget(record('large'), 'approval:bob')) ?? '';
    const approval = JSON.parse(text) as { signature: string };
    await alter('large', ['approval:bob', JSON.stringify({ ...approval, signature: 'A'.repeat(86) })]);
    expect(await found()).toEqual(['exit 5', 'large approval']);
  });
});

describe('with another keyring', () => {
  async function withKeys(change: (key: KeyEntry) => KeyEntry | undefined): Promise<void> {
    const entries = keyring.flatMap((key) => change(key) ?? []);
    const before = env['PAYOUT_KEYS_FILE'] ?? '';
    env['PAYOUT_KEYS_FILE'] = await writeKeyring(join(keys.dir, 'others.json'), entries);
    undo.push(async () => Promise.resolve((env['PAYOUT_KEYS_FILE'] = before)));
  }
  /** Another key of Ann's. */
  const spare = (key: KeyEntry): KeyEntry => ({ ...key, role: 'approver', person: 'Ann' });
  const both = (kind: string): string[] => [`large ${kind}`, `small ${kind}`];

  it('a key that is not in it, that is no producer, or that was not valid then, is found without Redis too', async () => {
    await withKeys((key) => (key.name === 'shop' ? undefined : key));
    expect(await found('--offline')).toEqual(['exit 5', ...both('key')]);
    await withKeys((key) => (key.name === 'shop' ? { ...key, role: 'operator' } : key));
    expect(await found('--offline')).toEqual(['exit 5', ...both('key')]);
    await withKeys((key) => (key.name === 'shop' ? { ...key, notAfter: '2020-01-01T00:00:00Z' } : key));
    expect(await found()).toEqual(['exit 5', ...both('key')]);
  });

  it('a signature of another key of the same name is found', async () => {
    const { public: other } = await keys.makeKey('other');
    await withKeys((key) => (key.name === 'shop' ? { ...key, public: other } : key));
    expect(await found()).toEqual(['exit 5', ...both('signature')]);
  });

  it('an approval of the person who signed, or who requested it, is found', async () => {
    await withKeys((key) => (key.name === 'ann' ? { ...key, person: 'Sam' } : key));
    expect(await found()).toEqual(['exit 5', 'large approval']);
    await withKeys((key) => (key.name === 'ann' ? { ...key, person: 'Pat' } : key));
    expect(await found()).toEqual(['exit 5', 'large approval']);
  });

  it('two approvals of one person are too few for the policy, where that is the same', async () => {
    await withKeys((key) => (key.name === 'ann' ? { ...key, person: 'Bob' } : key));
    expect(await found()).toEqual(['exit 0']);
    // The person is in the group still, or the policy would not load.
    await withKeys((key) =>
      key.name === 'ann' ? { ...key, person: 'Bob' } : key.name === 'worker' ? spare(key) : key,
    );
    env['PAYOUT_POLICY_FILE'] = policyFile;
    undo.push(async () => Promise.resolve(delete env['PAYOUT_POLICY_FILE']));
    const { findings } = await verify();
    expect(findings.filter(({ kind }) => kind === 'approval')).toMatchObject([
      {
        payoutId: 'large',
        kind: 'approval',
        message: expect.stringContaining('1 more of the group finance than approved it (bob)'),
      },
    ]);
  });

  it('sends of a key that was revoked since are counted', async () => {
    await withKeys((key) => (key.name === 'shop' ? { ...key, revoked: true } : key));
    const { code, report } = await verify();
    expect({ code, revoked: report['revokedKeys'] }).toEqual({ code: 0, revoked: { shop: 2 } });
  });

  it('without one, the hashes are compared all the same', async () => {
    const { PAYOUT_KEYS_FILE: file = '', ...others } = env;
    env = others;
    undo.push(async () => Promise.resolve((env['PAYOUT_KEYS_FILE'] = file)));
    expect(await found()).toEqual(['exit 0']);
    await alter('small', ['metadata', '{"order":6}']);
    expect(await found()).toEqual(['exit 5', 'small signature']);
  });
});

describe('payouts audit export', () => {
  it('has the fee, the currency, who signed, who approved, and when', async () => {
    const { stdout } = await run('audit', 'export', '--json');
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>);
    const large = rows.find(({ payout_id: payoutId }) => payoutId === 'large');
    const [payment] = world.sandbox.payments().filter(({ amount }) => amount === '250');
    expect(large).toMatchObject({
      ...{ payout_id: 'large', attempt: 1, amount: '250', address_to: WALLET, outcome: 'accepted', policy: policyHash },
      ...{
        currency: 'USDT (TRC-20)',
        fee: payment?.fee,
        txhash: payment?.txhash,
        state: 'completed',
        reference: '=invoice 5',
      },
      ...{ signer: 'shop', signer_person: 'sam', requested_by: 'Pat', approved_by: 'ann; bob' },
      ...{ answered_at: expect.stringMatching(/^20.*Z$/), state_at: expect.stringMatching(/^20.*Z$/) },
    });
    expect(large?.['approvals']?.split(' ')).toHaveLength(2);
    expect(rows.find(({ payout_id: payoutId }) => payoutId === 'small')).not.toHaveProperty('approved_by');
  });

  it('is safe for spreadsheets, and leaves out of Redis what it is told to', async () => {
    const csv = (await run('audit', 'export')).stdout;
    expect(csv).toContain(`,'=invoice 5\n`);
    expect(csv).not.toContain(',=invoice 5');
    const offline = (await run('audit', 'export', '--offline')).stdout;
    // The journal has what was signed.
    expect(offline).toContain(`,'=invoice 5\n`);
    expect(offline).not.toContain('completed');
    expect(offline.split('\n')[0]).toBe(csv.split('\n')[0]);
  });
});
