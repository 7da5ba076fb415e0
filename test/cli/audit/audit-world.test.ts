import type { KeyObject } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { Finding } from '../../../src/cli/audit/finding.js';
import { verifySend } from '../../../src/cli/audit/verify-send.js';
import { formatApproval, hashApproval } from '../../../src/control/approvals/approval.js';
import { type Approval, approvalFieldName, toApprovalField } from '../../../src/ledger/control-record.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
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
import { signText } from '../../control/support/sign-at-once.js';
import { keySigner } from '../../../src/control/keys/signing-key.js';

/** A real worker with keys and a policy has sent payouts; then someone writes to Redis, or to the journal. */

const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const OTHER_WALLET = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8';

let world: PayoutWorld;
let keys: TestKeys;
let keyring: KeyEntry[];
let annKey: KeyObject;
let env: Record<string, string>;
let ledger: LedgerConnection;
let journalFile: string;
let policyFile: string;

const run = async (...args: string[]): Promise<CliResult> => runInProcess(args, env);
const textOf = async (...args: string[]) => (await run('audit', 'verify', ...args)).stdout;

async function verify(...args: string[]) {
  const { code, stdout } = await run('audit', 'verify', '--json', ...args);
  const report = JSON.parse(stdout) as Record<string, unknown>;
  return { code, findings: report['findings'] as Finding[], report };
}

/** What it found, as `payoutId kind`, with the exit code. */
async function found(...args: string[]) {
  const { code, findings } = await verify(...args);
  return [`exit ${code}`, ...findings.map(({ payoutId, kind }) => `${payoutId} ${kind}`).sort()];
}

const record = (payoutId: string) => ledger.keys.payout(payoutId);
const heads = async (): Promise<PayoutEvent[]> =>
  (await readEvents(ledger, { sinceMs: 0 }, 1_000)).filter(({ type }) => type === 'journal_head');

/** Puts back what a test changed. */
const undo: (() => unknown)[] = [];

function setEnv(name: string, value: string) {
  const before = env;
  env = { ...env, [name]: value };
  undo.push(() => (env = before));
}

async function keepRecord(payoutId: string) {
  const before = await ledger.redis.hgetall(record(payoutId));
  undo.push(async () => {
    await ledger.redis.del(record(payoutId));
    if (Object.keys(before).length > 0) await ledger.redis.hset(record(payoutId), before);
  });
}

async function keepJournal() {
  const before = await readFile(journalFile, 'utf8');
  undo.push(async () => writeFile(journalFile, before));
  return before;
}

async function alter(payoutId: string, fields: Record<string, string>) {
  await keepRecord(payoutId);
  await ledger.redis.hset(record(payoutId), fields);
}

async function sendBoth() {
  world = await openWorld();
  keys = await openTestKeys();
  const [shop, ann, bob] = [await keys.makeKey('shop'), await keys.makeKey('ann'), await keys.makeKey('bob')];
  annKey = ann.privateKey;
  const worker = await keys.makeKey('worker');
  keyring = [
    { name: 'shop', role: 'producer', person: 'Sam', public: shop.public },
    { name: 'ann', role: 'approver', person: 'Ann', public: ann.public },
    { name: 'bob', role: 'approver', person: 'Bob', public: bob.public },
    { name: 'worker', role: 'worker', person: 'Worker', public: worker.public },
  ];
  const { platformId, redisUrl, dir } = world;
  const [keysFile, journalDir] = [await keys.writeKeyring(...keyring), join(dir, 'journal')];
  journalFile = join(journalDir, `${platformId}.journal`);
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
  ledger = connectLedger(connectRedis(redisUrl, 'commands'), platformId);
  const sending = world.startWorker({
    environment: {
      ...{ PAYOUT_KEYS_FILE: keysFile, PAYOUT_POLICY_FILE: policyFile, IN_FLIGHT_MAX_MS: '20000' },
      ...{ PAYOUT_WORKER_SIGNER: worker.file, PAYOUT_WORKER_SIGNER_NAME: 'worker' },
    },
  });
  await until(`it sends:\n${sending.log()}`, () => sending.log().includes('acquired sender lease'));
  const producer = new PayoutProducer({
    redisUrl,
    platformId,
    audience: TEST_AUDIENCE,
    signer: keySigner('shop', shop.privateKey),
  });
  const about = { paymentId: 6, addressTo: WALLET, requestedBy: 'Pat', reference: '=invoice 5' };
  await producer.enqueueMany([
    { ...about, payoutId: 'large', amount: '250' },
    { ...about, payoutId: 'small', amount: '12.5', metadata: { order: 5 } },
  ]);
  await until('it is held', async () => (await producer.get('large'))?.state === 'held');
  for (const file of [ann.file, bob.file]) {
    expect(await run('approve', 'large', '--key', file, '--yes', '--reason', 'seen')).toMatchObject({ code: 0 });
  }
  // `waitFor` returns on what is held.
  await until('the worker has seen the approvals', async () => (await producer.get('large'))?.state !== 'held');
  for (const payoutId of ['small', 'large']) {
    expect(await producer.waitFor(payoutId, { timeoutMs: 40_000 })).toMatchObject({ state: 'completed' });
  }
  await producer.close();
  const reported = async (): Promise<string | undefined> => (await readWorkers(ledger))[0]?.journalHead?.hash;
  await until('its report has the head', async () => (await reported()) !== undefined);
  expect(await reported()).toBe((await heads())[0]?.hash);
  sending.kill('SIGTERM');
  expect(await sending.ended).toBe(0);
}

async function close() {
  await endAllWorkers();
  await closeRedis(ledger.redis);
  await world.close();
  await keys.close();
}

beforeAll(async () => {
  await sendBoth();
  // On a busy machine a send may miss its guard, and is made again; or the last head is not published in time.
  while ((await verify()).report['sends'] !== 2 || (await heads()).length !== 2) {
    await close();
    await sendBoth();
  }
}, 300_000);
afterAll(close);

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

it('finds nothing wrong with what a worker did, and says what it compared', async () => {
  const { code, findings, report } = await verify();
  expect({ code, findings }).toEqual({ code: 0, findings: [] });
  expect(report).toMatchObject({
    ...{ sends: 2, faults: [], others: [], unsigned: 0, revokedKeys: {} },
    ledger: { compared: true, sends: 2, removed: 0, before: 0, onWord: 0, otherJournals: [] },
  });
  const published = await heads();
  expect(published).toHaveLength(2);
  expect(published[1]).toMatchObject({ hash: report['head'], reason: expect.stringMatching(/, send number 2$/) });
  // Its quorums are asked for too.
  setEnv('PAYOUT_POLICY_FILE', policyFile);
  expect(await textOf()).toMatch(
    /\nsignatures +2 signed sends: 2 verified\nledger +2 sends compared\nfindings +none\n$/,
  );
});

it('finds a journal whose end was cut off', async () => {
  const before = await keepJournal();
  const lines = before.trimEnd().split('\n');
  /** From the first line on that has these words. */
  const cutOff = async (...words: readonly string[]): Promise<void> => {
    const from = lines.findIndex((line) => words.every((word) => line.includes(word)));
    await writeFile(journalFile, `${lines.slice(0, from).join('\n')}\n`);
  };
  const last = (await heads()).at(-1);
  const head = String(last?.hash);
  await cutOff('"large"', '"outcome"');
  expect(await found()).toEqual(['exit 5', ' head', 'large state']);
  const cut = new RegExp(`a worker published at .* that the journal ends with ${head}, .* its end was cut off`);
  expect(await textOf()).toMatch(cut);
  await cutOff('"large"', '"request"');
  await ledger.redis.xdel(ledger.keys.events, last?.eventId ?? '');
  expect(await found()).toEqual(['exit 5', 'large not_in_journal']);
});

it.each([
  ['its address', { addressTo: OTHER_WALLET }, ['altered']],
  ['its gatewayId', { gatewayId: 'another' }, ['receipt', 'gateway_id']],
  ['its txhash', { txhash: 'another' }, ['receipt', 'gateway_id']],
  ['its signature', { sig: 'A'.repeat(64) }, ['signature']],
  ['its state, to none that there is', { state: 'paid' }, ['unreadable']],
  ['all, as if it had never been sent', { state: 'queued', attempt: '0' }, ['not_in_ledger']],
])('finds a record that someone altered in Redis: %s', async (_, fields, kinds) => {
  await alter('small', fields);
  const all = await found();
  expect(all).toEqual(expect.arrayContaining(['exit 5', ...kinds.map((kind) => `small ${kind}`)]));
  expect(all.slice(1).every((each) => each.startsWith('small '))).toBe(true);
});

it('names a payment that someone invented, whether an index names it or not', async () => {
  const given = {
    paymentId: '6',
    amount: '5',
    addressTo: WALLET,
    gatewayId: 'h',
    n: '1',
    h0: `c${Date.now().toString(36)}`,
  };
  await alter('invented', { ...given, state: 'completed', attempt: '1', tokens: 'abcdefgh' });
  expect(await found()).toEqual(['exit 5', 'invented not_in_journal']);
  await alter('invented', { attempt: '0', state: 'rejected' });
  expect(await found()).toEqual(['exit 5', 'invented not_in_journal']);
});

it('finds a send that only the stream of spends has', async () => {
  const [first] = await ledger.redis.xrange(ledger.keys.spent, '-', '+', 'COUNT', 1);
  const spend = JSON.parse(first?.[1]?.[7] ?? '') as Record<string, unknown>;
  const add = async (changes: object): Promise<void> => {
    const text = JSON.stringify({ ...spend, ...changes });
    const fields = ['token', 'x', 'kind', 'begun', 'at', String(Date.now()), 'spend', text];
    const id = await ledger.redis.xadd(ledger.keys.spent, '*', ...fields);
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

/** As someone who writes to Redis does it. */
async function remove(payoutId: string, state: string) {
  await keepRecord(payoutId);
  const bucket = ledger.keys.removedBucket(payoutId);
  await ledger.redis.multi().del(record(payoutId)).hset(bucket, payoutId, state).exec();
  undo.push(async () => ledger.redis.hdel(bucket, payoutId));
}

it('a payout that Redis says was removed is found where it was paid, or where retention cannot have come to it', async () => {
  await remove('small', 'completed');
  expect(await found()).toEqual(['exit 5', 'small removed']);
  setEnv('PAYOUT_RETENTION_DAYS', '1');
  expect(await textOf()).toMatch(/removed as completed; PAYOUT_RETENTION_DAYS is 1, and the journal has its send of /);
  await remove('small', 'rejected');
  const { findings, report } = await verify();
  const message = expect.stringMatching(/^the journal says accepted as .* it was removed as rejected$/);
  expect(findings).toMatchObject([{ payoutId: 'small', kind: 'state', message }]);
  expect(report).toMatchObject({ verified: 1, notVerifiable: 0, ledger: { sends: 1, removed: 1 } });
});

it('a payout that Redis says was removed is shown by `payouts get` as the journal has it', async () => {
  const gatewayId = (await ledger.redis.hget(record('small'), 'gatewayId')) ?? '';
  await remove('small', 'rejected');
  const journal = /The send journal has attempt 1 of small: 12\.5 \(payment_id 6\) to \S+ at .* UTC, accepted as /;
  const expectShown = async (said: string, ...args: string[]): Promise<void> => {
    const { code, stderr } = await run('get', ...args);
    expect([code, stderr, stderr]).toEqual([3, expect.stringContaining(said), expect.stringMatching(journal)]);
  };
  await expectShown('Payout small was rejected, and PAYOUT_RETENTION_DAYS removed it from Redis', 'small');
  await expectShown('No payout has the payment', '--gateway-id', gatewayId.toUpperCase());
  await ledger.redis.hdel(ledger.keys.removedBucket('small'), 'small');
  await expectShown('Redis has lost its record', 'small');
});

it('a payout that Redis says was removed is found where the journal has two transactions of it', async () => {
  const before = await keepJournal();
  const { at, token, request, epoch, sends, signed } = await lineOf('small');
  const again = { payoutId: 'small', attempt: 2, token: 'again' };
  const lines: JournalLine[] = [
    { ...again, epoch, sends: sends + 2, after: { sends, token }, request, inFlightMs: 0, at: at + 5, signed },
    { ...again, outcome: { kind: 'accepted', gatewayId: 'second' }, at: at + 6 },
  ];
  await writeFile(journalFile, before + toChainedLines(lines, lastHash(before)));
  await remove('small', 'completed');
  setEnv('PAYOUT_RETENTION_DAYS', '1');
  for (const args of [[], ['--offline']]) expect(await found(...args)).toContain('small sent_again');
});

it('the signature in the journal is verified without the record, also without Redis', async () => {
  expect(await verify('--offline')).toMatchObject({ code: 0, report: { verified: 1, notVerifiable: 1 } });
  expect(await textOf('--offline')).toMatch(
    /\nsignatures +2 signed sends: 1 verified; 1 not verifiable, because the record is gone/,
  );
});

it('the signature in the journal is judged', async () => {
  const { signed, ...send } = await lineOf('small');
  if (signed === undefined) throw new Error('it is not signed');
  const { proof } = signed;
  const context = { platformId: world.platformId, keyring: keyringOf(...keyring) };
  for (const [change, message] of [
    [{ signature: 'A'.repeat(86) }, /its signature in the journal does not hold/],
    [{ requestedBy: 'ann' }, /stands for another intent than the one that it names/],
  ] as const) {
    const changed = { ...send, signed: { ...signed, proof: { ...proof, ...change } } };
    const findings = [{ message: expect.stringMatching(message) }];
    expect(verifySend(changed, undefined, context)).toMatchObject({ findings, isVerified: false });
  }
});

it('finds approvals that were altered or removed', async () => {
  const approval = JSON.parse((await ledger.redis.hget(record('large'), 'approval:bob')) ?? '') as object;
  await alter('large', { 'approval:bob': JSON.stringify({ ...approval, signature: 'A'.repeat(86) }) });
  expect(await found()).toEqual(['exit 5', 'large approval']);
  await ledger.redis.hdel(record('large'), 'approval:bob', 'approval:ann');
  expect(await found()).toEqual(['exit 5', 'large approval', 'large approval']);
});

it('finds a send that came after a rejection: by the record, and by the journal alone', async () => {
  // In the time before, the command refuses: it was sent.
  const said = {
    audience: TEST_AUDIENCE,
    payoutId: 'small',
    intent: '',
    decision: 'reject',
    reason: 'no',
    by: 'ann',
  } as const;
  // A clock that is ahead makes no difference.
  const rejection: Approval = { ...said, at: '2099-01-01T00:00:00.000Z' };
  const { platformId } = world;
  const signature = signText(formatApproval(platformId, rejection), annKey);
  const field = approvalFieldName(rejection, hashApproval(platformId, rejection));
  await alter('small', { [field]: toApprovalField({ ...rejection, signature }) });
  expect(await found()).toEqual(['exit 5', 'small rejected']);
  expect(await found('--offline')).toEqual(['exit 0']);
  const text = await keepJournal();
  const plain = text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const rest = JSON.parse(line) as Record<string, unknown>;
      delete rest['prev'];
      return rest as unknown as JournalLine;
    });
  const sent = plain.findIndex((line) => 'request' in line && line.payoutId === 'small');
  const rejected = { payoutId: 'small', rejection: 'ab'.repeat(32), by: 'ann', person: 'ann' };
  await writeFile(journalFile, toChainedLines([...plain.slice(0, sent), { rejected }, ...plain.slice(sent)], []));
  expect((await verify('--offline')).findings).toEqual([
    expect.objectContaining({
      payoutId: 'small',
      attempt: 1,
      kind: 'rejected',
      message: expect.stringMatching(/ann had/),
    }),
  ]);
  const { payoutId, rejection: hash } = rejected;
  const over = { unrejected: { payoutId, rejection: hash } };
  await writeFile(journalFile, toChainedLines([...plain.slice(0, sent), { rejected }, over, ...plain.slice(sent)], []));
  expect((await verify('--offline')).findings).toEqual([]);
});

async function withKeys(changes: Record<string, Partial<KeyEntry>>) {
  const entries = keyring.map((key) => ({ ...key, ...changes[key.name] }));
  setEnv('PAYOUT_KEYS_FILE', await writeKeyring(join(keys.dir, 'others.json'), entries));
}
const withShop = async (change: Partial<KeyEntry>): Promise<void> => withKeys({ shop: change });

it('with another keyring finds a key that is not in it, is no producer, was not valid then', async () => {
  for (const [kind, change] of [
    ['key', { name: 'stall' }],
    ['key', { role: 'operator' }],
    ['key', { notAfter: '2020-01-01T00:00:00Z' }],
    ['signature', { public: (await keys.makeKey('other')).public }],
  ] as [string, Partial<KeyEntry>][]) {
    await withShop(change);
    expect(await found('--offline')).toEqual(['exit 5', `large ${kind}`, `small ${kind}`]);
  }
});

it('with another keyring finds an approval of the person who signed or requested it; counts sends of a revoked key', async () => {
  for (const person of ['Sam', 'Pat']) {
    await withKeys({ ann: { person } });
    expect(await found()).toEqual(['exit 5', 'large approval']);
  }
  await withShop({ revoked: true });
  expect(await verify()).toMatchObject({ code: 0, report: { revokedKeys: { shop: 2 } } });
});

it('with another keyring finds too few approvals for the policy, where that is the same', async () => {
  // Ann has another key, or the policy would not load.
  await withKeys({ ann: { person: 'Bob' }, worker: { role: 'approver', person: 'Ann' } });
  setEnv('PAYOUT_POLICY_FILE', policyFile);
  const message = expect.stringContaining('1 more of the group finance than approved it (bob)');
  expect((await verify()).findings).toContainEqual(expect.objectContaining({ kind: 'approval', message }));
});

it('with another keyring compares the hashes without one', async () => {
  setEnv('PAYOUT_KEYS_FILE', '');
  expect(await found()).toEqual(['exit 0']);
  await alter('small', { metadata: '{"order":6}' });
  expect(await found()).toEqual(['exit 5', 'small signature']);
});

it('payouts audit export has the fee, who signed, who approved, and when', async () => {
  const [payment] = world.sandbox.payments().filter(({ amount }) => amount === '250');
  const { stdout } = await run('audit', 'export', '--json');
  const rows = stdout.trimEnd().split('\n');
  expect(rows.map((row) => JSON.parse(row) as unknown)).toContainEqual(
    expect.objectContaining({
      ...{ payout_id: 'large', attempt: 1, amount: '250', address_to: WALLET, outcome: 'accepted', state: 'completed' },
      ...{ policy: expect.stringMatching(/^[0-9a-f]{64}$/), currency: 'USDT (TRC-20)', reference: '=invoice 5' },
      ...{
        fee: payment?.fee,
        gateway_id: payment?.txhash,
        txhash: payment?.txhash,
        approvals: expect.stringMatching(/^\w+ \w+$/),
      },
      ...{ signer: 'shop', signer_person: 'sam', requested_by: 'Pat', approved_by: 'ann; bob' },
      ...{ answered_at: expect.stringMatching(/^20.*Z$/), state_at: expect.stringMatching(/^20.*Z$/) },
    }),
  );
  // The journal has what was signed.
  expect((await run('audit', 'export', '--offline')).stdout).toMatch(/,'=invoice 5\n/);
});

it('of another host finds what only that has sent, until its journal is named', async () => {
  const dir = join(world.dir, 'other');
  const journal = await FileSendJournal.open({ dir, platformId: world.platformId });
  setEnv('SEND_JOURNAL_DIR', dir);
  // What was sent before this journal began is not expected in it.
  const began = { ledger: { sends: 0, before: 2 } };
  expect(await verify()).toMatchObject({ code: 0, findings: [], report: began });
  await journal.noteComplete({ at: Date.now(), by: 'ann', reason: 'new account' });
  await journal.close();
  const missing = { kind: 'not_in_journal', action: expect.stringContaining('--journal') };
  const otherJournals = [expect.stringMatching(/^[0-9a-f]{12}$/)];
  const alone = { code: 5, findings: [missing, missing], report: { ledger: { otherJournals } } };
  expect(await verify()).toMatchObject(alone);
  const both = { ledger: { sends: 2, otherJournals: [] }, others: [{ sends: 2, faults: [] }] };
  const named = await verify('--journal', dirname(journalFile));
  expect(named).toMatchObject({ code: 0, findings: [], report: both });
});
