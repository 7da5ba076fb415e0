import { chmod, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { NOTIFY_GROUP } from '../../../src/ledger/reads/state-events.js';
import { writeKeyring, writePrivateKey } from '../../control/support/key-files.js';
import { keyEntry, type KeyEntry, testKey } from '../../control/support/keys.js';
import { until } from '../../support/until.js';
import { NO_SENDER, problemOf, useDoctor, warningOf } from '../support/doctor-rig.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { SEND_CHECKS } from '../../../src/worker/sender/send-checks.js';

const doctor = useDoctor();
const inDir = (...names: string[]) => join(doctor.dir, ...names);
const write = async (name: string, text: string) => {
  await writeFile(inDir(name), text, { mode: 0o600 });
  return inDir(name);
};

it('prints a line for each check, and leaves Redis and the folder unchanged', async () => {
  const { code, out, err } = await doctor.run();
  expect([code, err]).toEqual([0, '']);
  const lines = out.split('\n').filter((line) => line !== '');
  const warning = '! sender                   no process sends for the account\n';
  expect(out).toContain(`${warning}                           → Start \`payouts worker\`. Was nothing ever sent`);
  // A busy machine is warned of its speed too.
  const ends = [`Account ${doctor.platformId}: No worker`, expect.stringMatching(/^No problems found; \d warnings\.$/)];
  expect([lines[0], lines.at(-1)]).toEqual(ends);
  expect(lines.filter((line) => /^[✓!]/.test(line))).toHaveLength(26);
  const listed = lines.flatMap((line) => /^\d+\. (.*)$/.exec(line)?.[1] ?? []);
  expect(listed).toEqual(SEND_CHECKS.map(({ name }) => name));
  expect(await doctor.client.keys(`${doctor.prefix}*`)).toEqual([]);
  expect(await readdir(doctor.dir)).toEqual([]);
});

it('sees the heartbeat of the sender, and does not touch its journal', async () => {
  const worker = await doctor.startWorker(inDir('journal'), 1_000);
  await until('it is the sender', () => worker.accounts[0]?.status.role === 'sender');
  const journal = inDir('journal', `${doctor.platformId}.journal`);
  // A line that is being written: opening the journal would end it as a torn one.
  await writeFile(journal, '{"payoutId":', { flag: 'a' });
  const before = await readFile(journal, 'utf8');
  const { code, out } = await doctor.run();
  const after = await readFile(journal, 'utf8');
  await worker.stop();
  expect(out).toMatch(/✓ journal and ledger {7}they agree on 0 sends\n/);
  expect(out).toMatch(/✓ sender {19}\S+:\d+:\w+ \(epoch \d\), heartbeat received\n/);
  expect([code, after]).toEqual([0, before]);
  expect(await readdir(inDir('journal'))).toEqual([`${doctor.platformId}.journal`]);
});

it('warns of a variable that is probably misspelt, without its value', async () => {
  const said = ['WITHDRAW_INTERVALL_MS is not known and has no effect', 'Did you mean WITHDRAW_INTERVAL_MS?'] as const;
  const misspelt = [warningOf('environment', ...said), NO_SENDER];
  const found = await doctor.expectFindings(0, misspelt, { WITHDRAW_INTERVALL_MS: '98765' });
  expect(JSON.stringify(found)).not.toContain('98765');
  doctor.environment = { REDIS_URL: doctor.redis.url };
  expect(await doctor.run()).toEqual({ code: 2, out: '', err: expect.stringContaining('GATEWAY_SECRET_KEY') });
});

it('in Redis: settings that may lose what was sent, which were allowed, or that cost memory', async () => {
  await doctor.client.config('SET', 'maxmemory-policy', 'allkeys-lru', 'hash-max-ziplist-value', '127');
  const { code, found } = await doctor.findings({ ALLOW_VOLATILE_REDIS: 'true' });
  await doctor.client.config('SET', 'maxmemory-policy', 'noeviction', 'hash-max-ziplist-value', '128');
  const allowed = [warningOf('Redis keeps its data', 'allkeys-lru'), warningOf('Redis memory', ''), NO_SENDER];
  expect([code, found]).toEqual([0, allowed]);
});

it('in Redis: one without TLS, or that asks for a password', async () => {
  const { url } = doctor.redis;
  const find = async (redisUrl: string, detail: string) => {
    const found = await doctor.expectFindings(1, [problemOf('Redis', detail)], { REDIS_URL: redisUrl });
    expect(JSON.stringify(found)).not.toContain('hidden-word');
  };
  await find(url.replace('redis:', 'rediss:'), 'the port is open, but does not speak TLS');
  await doctor.client.config('SET', 'requirepass', 'right-word');
  try {
    await find(url, 'it asks for a password, and there is none in the address');
    await find(url.replace('//', '//:hidden-word@'), 'WRONGPASS');
  } finally {
    await doctor.client.config('SET', 'requirepass', '');
  }
});

it('payouts doctor finds, in the gateway: a wrong key, answers that are none', async () => {
  const wrong = [problemOf('gateway account', 'wrong signature'), NO_SENDER];
  const shown = await doctor.expectFindings(1, wrong, { GATEWAY_SECRET_KEY: 'another-key' });
  expect(JSON.stringify(shown)).not.toContain('another-key');
  doctor.sandbox.setFaults([{ kind: 'wrong-json', endpoint: 'any' }]);
  const { found } = await doctor.findings({ GATEWAY_SECRET_KEY: doctor.secretKey });
  doctor.sandbox.setFaults([]);
  expect(found).toEqual([problemOf('gateway account', 'not as documented'), NO_SENDER]);
});

it('finds a journal folder that cannot be written', async () => {
  const behindFile = { SEND_JOURNAL_DIR: join(await write('a-file', ''), 'journal') };
  expect((await doctor.findings(behindFile)).found[0]).toEqual(problemOf('journal folder', 'ENOTDIR'));
  await symlink(inDir('nowhere'), inDir('link'));
  const { found } = await doctor.findings({ SEND_JOURNAL_DIR: inDir('link', 'journal') });
  expect(found[0]).toEqual(problemOf('journal folder', `${inDir('link')} is a symbolic link to nothing`));
});

it('finds an archive into which nothing ever comes', async () => {
  const unused = { PAYOUT_ARCHIVE_DIR: inDir('archive') };
  await doctor.expectFindings(0, [warningOf('archive folder', '', 'PAYOUT_RETENTION_DAYS'), NO_SENDER], unused);
  await doctor.expectFindings(0, [NO_SENDER], { PAYOUT_RETENTION_DAYS: '30' });
  expect(await readdir(doctor.dir)).toEqual([]);
});

it('payouts doctor finds, in the policy: what keeps a worker from starting', async () => {
  const usePolicy = async (rule: string): Promise<void> => {
    const head = `version: 1, platformId: ${doctor.platformId}, default: hold, groups: { finance: [alice, bob] }`;
    const text = `{ ${head}, rules: [${rule}] }`;
    doctor.environment['PAYOUT_POLICY_FILE'] = await write('policy.yaml', text);
  };
  await usePolicy('{ name: day, cap: { count: 10, within: 24h }, over: wait }');
  expect(await doctor.run()).toMatchObject({
    out: expect.stringMatching(/^✓ policy +1 rule in .*policy\.yaml; what no cap covers is held; hash [0-9a-f]{64}$/m),
  });
  await usePolicy('{ name: two, cap: { usd: 1 }, over: { approve: { by: finance, quorum: 1 } } }');
  await doctor.expectFindings(1, [problemOf('policy', 'needs the keyring'), NO_SENDER]);
  const alice = keyEntry(testKey(2), { name: 'alice', role: 'approver', person: 'alice' });
  const keyring = JSON.stringify({ version: 1, keys: [keyEntry(testKey(1)), alice] });
  const keyed = await doctor.findings({ PAYOUT_KEYS_FILE: await write('keys.json', keyring) });
  expect(keyed.found).toContainEqual(warningOf('policy', 'bob'));
  await write('keys.json', 'version: 2');
  await doctor.expectFindings(1, [problemOf('keys', ''), NO_SENDER]);
});

const key = (name: string) => `${doctor.prefix}:${name}`;

it('finds at once all that stands still: test/told has each alone', async () => {
  const { client } = doctor;
  await client.hset(key('sender'), { owner: 'gone:1:abc', epoch: 4, beat: 17, released: 0 });
  await client.zadd(key('state:queued'), 1, 'P-1');
  await client.zadd(key('state:unknown'), 1, 'P-2');
  await client.hset(key('ledger'), { pausedReason: 'gateway maintenance', pausedBy: 'anna' });
  await client.zadd(key('outbox'), 1, 'refunding P-1', 2, 'queued');
  await doctor.expectFindings(1, [
    problemOf('sender', 'and 1 payout queued'),
    warningOf('withdraw jobs', '1 of 1'),
    warningOf('outbox', '2 members that', `redis-cli ZRANGE '${key('outbox')}' 0 -1`),
    problemOf('pause', 'gateway maintenance (by anna)'),
    warningOf('unknown payouts', '1 may or may not have been sent'),
  ]);
});

it('finds a worker that refuses to send, instead of telling to start one', async () => {
  const now = Date.now();
  const report = { role: 'refused', reason: 'Payouts wait that it cannot know.', at: now, startedAt: now };
  await doctor.client.hset(key('workers'), 'host:1', JSON.stringify(report));
  const refuses = 'the worker host:1 refuses to send. Payouts wait that it cannot know.';
  await doctor.expectFindings(1, [problemOf('sender', refuses)]);
  await doctor.client.hset(key('workers'), 'host:1', JSON.stringify({ ...report, at: now - 61_000 }));
  await doctor.expectFindings(0, [NO_SENDER]);
});

it('finds more status polls than the rate allows', async () => {
  const due = Array.from({ length: 700 }, (_, index) => [index, `P-${index}~0`]).flat();
  await doctor.client.zadd(key('transactionstatus:delayed'), ...due);
  const late = warningOf('status polls', '700 polls due, which take 1 min at STATUS_POLL_RATE=10');
  await doctor.expectFindings(0, [NO_SENDER, late]);
});

it('finds notifications that are late, once they were started', async () => {
  const readLine = async (): Promise<CheckResult | undefined> => {
    const { checks } = JSON.parse((await doctor.run('--json')).out) as { readonly checks: CheckResult[] };
    return checks.find(({ name }) => name === 'notifications');
  };
  const [seconds = 0] = await doctor.client.time();
  await doctor.client.xadd(key('events'), `${seconds - 3_600}000-0`, 'type', 'paused');
  expect(await readLine()).toBeUndefined();
  await doctor.client.xgroup('CREATE', key('events'), NOTIFY_GROUP, '0');
  expect(await readLine()).toEqual(warningOf('notifications', 'the oldest waits for 1 h 0 min', 'start it'));
  await doctor.client.xgroup('SETID', key('events'), NOTIFY_GROUP, '$');
  expect(await readLine()).toMatchObject({ status: 'ok', detail: 'all delivered' });
});

it('finds every account of an accounts file', async () => {
  const { platformId, sandbox, secretKey } = doctor;
  const about = { baseUrl: sandbox.url, secretKeyFile: await write('key-0', secretKey) };
  const other = { platformId: platformId + 1, ...about, secretKeyFile: await write('key-1', 'another-key') };
  const accounts = JSON.stringify([{ platformId, ...about }, other]);
  doctor.environment['PAYOUT_ACCOUNTS_FILE'] = await write('accounts.json', accounts);
  expect(await doctor.run()).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      `✓ gateway account +${platformId}: platform id and[^]*✗ gateway account +${platformId + 1}: The gateway refused`,
    ),
  });
});

const [SHOP, ANN, WORKER] = [testKey(1), testKey(2), testKey(3)];
const shop = (changes: Partial<KeyEntry> = {}): KeyEntry => keyEntry(SHOP, changes);
const ann = (changes: Partial<KeyEntry> = {}): KeyEntry =>
  keyEntry(ANN, { name: 'ann', role: 'operator', person: 'Ann', ...changes });
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
const FINE = { code: 0, found: [] };

/** Runs doctor with a keyring of these keys. @returns what the checks of keys and journal found */
async function findWith(keys: readonly KeyEntry[], environment: Record<string, string> = {}) {
  const file = await writeKeyring(inDir('keys.yaml'), keys);
  const { code, found } = await doctor.findings({ PAYOUT_KEYS_FILE: file, ...environment });
  return { code, found: found.filter(({ name }) => name !== 'sender') };
}

async function withJournal(write: (journal: FileSendJournal) => Promise<unknown> | undefined) {
  const journal = await FileSendJournal.open({ dir: join(doctor.dir, 'journal'), platformId: doctor.platformId });
  await write(journal);
  await journal.close();
}
const adoptJournal = async (): Promise<void> =>
  withJournal(async (journal) => journal.noteComplete({ at: Date.now(), by: 'ann', reason: 'new account' }));

it('payouts doctor without a keyring says where to begin', async () => {
  const { out } = await doctor.run();
  expect(out).toMatch(/! keys +PAYOUT_KEYS_FILE is not set: anyone who can write to Redis can pay himself\n/);
  expect(out).toMatch(/→ .*docs\/control\.md.*`payouts keys generate NAME .*--role producer`/);
  expect(out).not.toContain('signed journal');
  const { found } = await doctor.findings({ PAYOUT_WORKER_SIGNER_NAME: 'worker-1' });
  expect(found).toContainEqual(problemOf('signers', 'PAYOUT_WORKER_SIGNER is required'));
});

it('payouts doctor judges the keyring', async () => {
  await adoptJournal();
  expect(await findWith([shop(), ann()])).toEqual(FINE);
  const { out } = await doctor.run();
  expect(out).toMatch(/✓ keys +only signed payouts are sent; 2 keys in .*keys\.yaml\n/);
  expect(out).toMatch(/✓ signed journal +stated to be complete by ann \(new account\)\n/);
  const former = keyEntry(WORKER, { name: 'former', person: 'Payroll', notAfter: inDays(-1) });
  for (const [keys, ...findings] of [
    [[shop(), ann({ revoked: true })], warningOf('keys', 'no key of an operator', '--role operator')],
    [[shop({ notAfter: inDays(13.9) }), ann()], warningOf('keys', 'the key "shop" (producer) ends at')],
    [[shop(), ann(), former], warningOf('keys', 'the key "former" (producer) ended at')],
    [[shop({ person: 'Payroll' }), ann(), former]],
  ] as [KeyEntry[], ...unknown[]][]) {
    expect(await findWith(keys)).toEqual({ code: 0, found: findings });
  }
  await chmod(join(doctor.dir, 'keys.yaml'), 0o666);
  const open = problemOf('keys', 'is not trusted: others than its owner can write');
  expect((await doctor.findings()).found).toContainEqual(open);
});

it('payouts doctor names a key for final states that nobody would believe', async () => {
  await adoptJournal();
  const file = await writePrivateKey(inDir('worker.pem'), WORKER);
  const environment = { PAYOUT_WORKER_SIGNER: file, PAYOUT_WORKER_SIGNER_NAME: 'worker-1' };
  const worker = keyEntry(WORKER, { name: 'worker-1', role: 'worker', person: 'Host 1' });
  const missing = await findWith([shop(), ann()], environment);
  expect(missing).toEqual({ code: 1, found: [problemOf('signers', 'which has none of that name (got "worker-1")')] });
  expect(await findWith([shop(), ann(), worker], environment)).toEqual(FINE);
  const { out } = await doctor.run();
  expect(out).toMatch(/✓ signers +PAYOUT_WORKER_SIGNER signs, with the key "worker-1"\n/);
  const other = keyEntry(testKey(9), { name: 'worker-1', role: 'worker', person: 'Host 1' });
  const wrong = problemOf('signers', 'PAYOUT_WORKER_SIGNER_NAME must be the name of the key');
  expect((await findWith([shop(), ann(), other], environment)).found).toContainEqual(wrong);
  const agent = {
    PAYOUT_SIGNER: `agent:SHA256:${'x'.repeat(43)}`,
    PAYOUT_SIGNER_NAME: 'shop',
    SSH_AUTH_SOCK: inDir('none'),
  };
  const away = problemOf('signers', 'PAYOUT_SIGNER: The ssh-agent cannot be reached');
  expect((await findWith([shop(), ann()], agent)).found).toContainEqual(away);
});

it('payouts doctor reads in the journal what is not sent, and a pause that Redis has lost', async () => {
  const adopt = `\`payouts audit adopt-journal --account ${doctor.platformId} --reason WHY\``;
  const first = "this host sends no payout that was signed before the worker's first start";
  expect((await findWith([shop(), ann()])).found).toEqual([warningOf('signed journal', first, adopt)]);
  await withJournal(() => undefined);
  const before = warningOf('signed journal', `signed before ${new Date().toISOString().slice(0, 10)}`);
  expect((await findWith([shop(), ann()])).found).toEqual([before]);
  await withJournal(async (journal) => journal.notePaused({ at: Date.now(), reason: 'looks like a block' }));
  const removed = problemOf('signed journal', '(looks like a block), although Redis shows no pause');
  expect((await findWith([shop(), ann()])).found).toContainEqual(removed);
});
