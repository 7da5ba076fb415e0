import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { appendFile, copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, it } from '@jest/globals';
import type { Notification } from '../../src/notifications/notification.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { startReceiver } from '../notifications/support/receiver.js';
import { cents } from '../support/account.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest, folderOfTest } from '../worker/support/close-after-test.js';
import { expectPace } from '../worker/support/payout-world.js';
import {
  blocksOf,
  fillIn,
  openRunbookHost,
  REDIS_PASSWORD,
  type OwnWords,
  type RunbookHost,
} from './support/runbook-host.js';

/** Pages of docs/, block by block, on a machine as they describe it. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ACCOUNT = 4242;
const SECRET_KEY = 'k-pages-0123456789';
const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

let sandbox: Sandbox;
let host: RunbookHost;
let producer: PayoutProducer;

beforeEach(async () => {
  const accounts = [{ platformId: ACCOUNT, secretKey: SECRET_KEY, balance: '1000000' }];
  sandbox = closeAfterTest(await startSandbox({ accounts, settleAfterMs: 200 }));
  host = closeAfterTest(await openRunbookHost(sandbox.url, SECRET_KEY));
  producer = closeAfterTest(new PayoutProducer({ redisUrl: host.redisUrl, platformId: ACCOUNT }));
});

/** All blocks of a page, which are as many as the test knows. */
async function exactly(count: number, page: string) {
  const blocks = await blocksOf(page);
  expect([page, blocks.length]).toEqual([page, count]);
  return blocks;
}

async function untilState(state: string, ...payoutIds: readonly string[]) {
  for (const payoutId of payoutIds)
    await until(`${payoutId} is ${state}`, async () => (await producer.get(payoutId))?.state === state);
}

/** Starts a block of which the last command serves until it is ended. */
async function serve(block: string, values: OwnWords, ready: RegExp) {
  const running = host.start(fillIn(block, values).replace(/\bpayouts (?=\w+( *#.*)?\n$)/, 'exec payouts '));
  afterTest(async () => {
    running.kill('SIGKILL');
    await running.result;
  });
  return {
    found: await running.waitForOutput(ready),
    stop: async () => {
      running.kill('SIGTERM');
      const { code, stderr } = await running.result;
      expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
    },
  };
}

const LATER = { notBefore: '2099-01-01T00:00:00Z' };

const FOUR_EYES = `version: 1
platformId: "${ACCOUNT}"
default: send
groups: { finance: [ann, bob] }
approvals: { requestedBy: any }
rules:
  - { name: four-eyes, when: { paymentId: ["6"] }, cap: { amount: "0.01" }, over: { approve: { by: finance, quorum: 1 } } }
`;

/** What a person types, or would answer with yes. */
const ANSWERED = {
  'payouts approve ': 'payouts approve --yes ',
  'payouts reject ': 'payouts reject --yes ',
  'payouts unreject ': 'payouts unreject --yes ',
};

/** Each with an amount of its own: the sandbox counts what is equal as paid twice. */
const row = (payoutId: string) =>
  `${payoutId},6,${payoutId === 'invoice-77' ? '12.5' : Number(payoutId.split('-')[1])},${ADDRESS}\n`;
const HEAD = 'payout_id,payment_id,amount,address_to\n';

it('docs/control.md makes keys, has people approve, also offline and by docs/dashboard.md, and audits the journal by its head', async () => {
  const [generate = '', generateApprover = '', approve = '', offline = '', audit = ''] = await exactly(5, 'control');
  const keyring = host.path('etc/payouts/keys.yaml');
  await writeFile(keyring, 'version: 1\nkeys:\n', { mode: 0o600 });
  const enter = async (printed: string) => appendFile(keyring, /^ {2}- \{.*\}\n/m.exec(printed)?.[0] ?? '');
  await enter(await host.run(generate));
  await enter(await host.run(generateApprover));
  await host.run('mkdir .ssh; ssh-keygen -q -t ed25519 -N "" -C bob -f .ssh/id_ed25519; cp .ssh/id_ed25519 bob');
  await copyFile(host.path('.ssh/id_ed25519.pub'), host.path('bob.pub'));
  const bob = (await readFile(host.path('bob.pub'), 'utf8')).trim();
  await enter(`  - { name: bob, role: approver, person: bob, public: "${bob}" }\n`);
  await writeFile(host.path('etc/payouts/policy.yaml'), FOUR_EYES, { mode: 0o600 });
  await host.addSettings(
    ...['PAYOUT_KEYS_FILE=/etc/payouts/keys.yaml', 'PAYOUT_POLICY_FILE=/etc/payouts/policy.yaml'],
    ...['PAYOUT_SIGNER=/etc/payouts/shop.pem', 'PAYOUT_SIGNER_NAME=shop'],
  );
  await host.shell('systemctl start payouts-worker');
  // What was signed before the worker's journal was begun is held for that.
  await until('it sends', async () => (await host.readWorkerLog()).includes('acquired sender lease'));
  const [single, salaries] = [
    ['invoice-77', 'invoice-78', 'invoice-79'],
    ['salary-1', 'salary-2'],
  ] as const;
  await writeFile(host.path('single.csv'), HEAD + single.map(row).join(''));
  await writeFile(host.path('salaries.csv'), HEAD + salaries.map(row).join(''));
  await host.run('payouts import single.csv --yes; payouts import salaries.csv --batch 2030-01-salaries --yes');
  await untilState('held', ...single, ...salaries);

  expect(await host.run(approve, ANSWERED)).toMatch(
    /^invoice-77 .*four-eyes[^]*Payout invoice-78 is rejected by key ann/m,
  );
  await untilState('completed', 'invoice-77', ...salaries);
  await host.run(offline);
  await untilState('completed', 'invoice-79');
  // Its person took the rejection back, and nobody has approved it.
  await untilState('held', 'invoice-78');
  expect(await producer.get('invoice-78')).toMatchObject({ held: { rule: 'four-eyes' } });

  const [post = ''] = await exactly(1, 'dashboard');
  await host.run('payouts approve invoice-78 --offline --key ann.pem --yes > signed.json');
  await host.addSettings('DASHBOARD_PORT=0', 'DASHBOARD_PASSWORD=pages-0123456789');
  const { found, stop } = await serve('payouts dashboard\n', {}, /Dashboard on (\S+?)\/?\n/);
  const mine = { '--user payouts ': '--user payouts:pages-0123456789 ', 'https://payouts.example': found[1] ?? '' };
  expect(await host.run(post, mine)).toMatch(/"payoutId":"invoice-78","decision":"approve","by":"ann"/);
  await stop();
  await untilState('completed', 'invoice-78');

  const [read = ''] = audit.split('\n');
  const head = (await host.run(read)).trim();
  const [shown = ''] = /[0-9a-f]{64}/.exec(audit) ?? [];
  const verified = await host.run(audit, { [shown]: head });
  expect(verified).toMatch(/^signatures +5 signed sends: 5 verified$/m);
  const other = await host.shell(audit);
  expect(other).toMatchObject({ code: 5, output: expect.stringContaining(shown) });
  expect(sandbox.stats(ACCOUNT).arrivals).toBe(5);
  expectPace(sandbox, ACCOUNT);
}, 180_000);

it('docs/import.md imports a file and a pipe, and signs elsewhere', async () => {
  const [importing = '', signing = ''] = await exactly(2, 'import');
  await writeFile(host.path('salaries.csv'), HEAD + row('salary-1') + row('salary-2'));
  const payout = (payoutId: string) => JSON.stringify({ payoutId, paymentId: 6, amount: '1', addressTo: ADDRESS });
  await host.writeProgram('your-program', `echo '${payout('piped')}'`);
  const asked = { 'salaries.csv --batch 2030-01-salaries': 'salaries.csv --batch 2030-01-salaries --yes' };
  await host.run(importing, asked);
  expect(await producer.batchStats('2030-01-salaries')).toMatchObject({ queued: 2 });
  expect(await producer.get('piped')).toMatchObject({ state: 'queued' });

  const keyring = host.path('etc/payouts/keys.yaml');
  await host.run(
    `(umask 077; echo 'version: 1'; echo 'keys:'; payouts keys generate shop --role producer --person shop --out /etc/payouts/shop.pem) > ${keyring}`,
  );
  await host.addSettings(
    ...['PAYOUT_KEYS_FILE=/etc/payouts/keys.yaml', 'PAYOUT_SIGNER=/etc/payouts/shop.pem', 'PAYOUT_SIGNER_NAME=shop'],
  );
  await writeFile(host.path('payouts.jsonl'), `${payout('signed')}\n`);
  await host.run(signing);
  expect(await host.run('payouts keys verify signed')).toMatch(/shop/);
  expect((await host.shell('payouts keys verify piped')).code).toBe(5);
});

it('docs/notifications.md starts, skips one that is refused, and ends', async () => {
  const [start = '', slack = '', telegram = '', skip = '', remove = ''] = await exactly(5, 'notifications');
  const receiver = closeAfterTest(await startReceiver());
  await mkdir(host.path('secrets'), { mode: 0o700 });
  await host.run('umask 077; openssl rand -hex 32 > secrets/notify-secret.txt');
  for (const [name, query] of Object.entries({ slack: '', telegram: '?chat_id=7' }))
    await writeFile(host.path(`secrets/${name}-url.txt`), `${receiver.url}/${name}${query}`, { mode: 0o600 });
  const serveUntilGrouped = async (block: string) => {
    const serving = await serve(block, { 'https://hooks.example': receiver.url }, /notifications start/);
    await until('its group exists', async () => (await host.shell(groups)).output.includes('payouts-notify'));
    return serving.stop;
  };
  const groups = `redis-cli XINFO GROUPS '{payouts:${ACCOUNT}}:events' || true`;
  const paths = () => receiver.received.map(({ path }) => path.split('?')[0]);
  const pause = async (reason: string) => host.run(`payouts pause --reason "${reason}"; payouts resume --reason done`);
  const bodies = () => receiver.received.map(({ body }) => JSON.parse(body) as Notification);

  const stop = await serveUntilGrouped(start);
  await pause('first');
  await until('both are posted', () => receiver.received.length === 2);
  expect(receiver.received[0]?.headers['payouts-signature']).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/);
  await stop();
  for (const block of [slack, telegram]) {
    const stopIt = await serveUntilGrouped(block);
    const posted = receiver.received.length;
    await pause('again');
    await until('both are posted', () => receiver.received.length === posted + 2);
    await stopIt();
  }
  expect(new Set(paths())).toEqual(new Set(['/payouts', '/slack', '/telegram']));

  const before = receiver.received.length;
  receiver.respond = ({ body }, response) =>
    void response.writeHead((JSON.parse(body) as Notification).type === 'paused' ? 400 : 204).end();
  const stopRefused = await serveUntilGrouped(start);
  await pause('refused');
  await until('it is refused', () => receiver.received.length > before);
  await stopRefused();
  const { eventId } = bodies().at(-1) ?? {};
  expect(await host.run(skip, { '1906102800000-0': String(eventId) })).toBe('1\n');
  const stopLast = await serveUntilGrouped(start);
  await until('what was behind it is posted', () => bodies().at(-1)?.type === 'resumed');
  await stopLast();
  expect(await host.run(remove)).toBe('1\n');
  expect((await host.shell(groups)).output).not.toContain('payouts-notify');
}, 120_000);

it('docs/deploy.md sets up a host of systemd from the files of the package', async () => {
  const [password = '', install = '', begin = ''] = await exactly(4, 'deploy');
  expect(await host.run(`unset REDISCLI_AUTH\n${password}redis-cli PING`, { PASSWORD: REDIS_PASSWORD })).toBe('PONG\n');
  await writeFile(host.path('pasted-key'), SECRET_KEY);
  await writeFile(host.path('pasted-url'), host.redisUrl);
  await host.run(`cd ${ROOT}deploy/systemd\n${install}`, {
    '/gateway-secret-key ': `/gateway-secret-key < ${host.path('pasted-key')} `,
    '/redis-url ': `/redis-url < ${host.path('pasted-url')} `,
  });
  // Account and gateway, and what this machine has elsewhere.
  await host.addSettings(
    ...[`GATEWAY_BASE_URL=${sandbox.url}`, 'HEALTH_PORT=0', 'SEND_JOURNAL_DIR=/var/lib/payouts/journal'],
    ...['REDIS_URL_FILE=/etc/payouts/secrets/redis-url', 'TAKEOVER_QUARANTINE_MS=1000', 'STATUS_POLL_MIN_MS=200'],
    'GATEWAY_SECRET_KEY_FILE=/etc/payouts/secrets/gateway-secret-key',
  );
  expect(await host.run(begin)).toContain('No problems found');
  await producer.enqueueMany(cents(['first']));
  await untilState('completed', 'first');
  const units = ['worker', 'dashboard', 'notify', 'serve'].map((name) => `etc/systemd/system/payouts-${name}.service`);
  for (const file of [...units, 'etc/sysusers.d/payouts.conf'])
    expect([file, existsSync(host.path(file))]).toEqual([file, true]);
}, 120_000);

it('docs/deploy.md has all files for docker-compose beside each other, from the packed package', async () => {
  const [, , , compose = ''] = await exactly(4, 'deploy');
  const folder = await folderOfTest('pack');
  const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const [{ filename }] = JSON.parse(execFileSync('npm', pack, { cwd: ROOT, encoding: 'utf8' })) as [
    { filename: string },
  ];
  const target = 'node_modules/payout-queue';
  // In place of the registry.
  await host.writeProgram(
    'npm',
    `[ "$*" = "install payout-queue" ] && mkdir -p ${target} && tar xzf ${join(folder, filename)} -C ${target} --strip-components 1`,
  );
  await host.run(compose);
  const named = readFileSync(host.path('docker-compose.yml'), 'utf8').matchAll(/file: (\.\/[\w./-]+)$/gm);
  const files = [...named].map(([, file = '']) => file);
  expect(files).not.toEqual([]);
  for (const file of [...files, 'Dockerfile', '.env.example'])
    expect([file, existsSync(host.path(file))]).toEqual([file, true]);
});

it('docs/leaving.md takes all there is along, also the ids of what retention removed', async () => {
  const [take = ''] = await exactly(1, 'leaving');
  await host.shell('systemctl start payouts-worker');
  await producer.enqueueMany(
    cents(['paid-1', 'paid-2', 'cancelled']).map((each, index) => ({ ...each, ...(index === 2 && LATER) })),
  );
  await untilState('completed', 'paid-1', 'paid-2');
  await host.run(
    'payouts cancel cancelled --reason "moved"; payouts pause --reason "moved"; systemctl stop payouts-worker',
  );
  await host.run(`redis-cli HSET '{payouts:${ACCOUNT}}:removed:000' removed-1 completed`);
  expect(await host.run(take)).toMatch(/^true$/m);
  const ids = (await readFile(host.path('never-pay-again.txt'), 'utf8')).trim().split('\n');
  expect(ids).toEqual(['cancelled', 'paid-1', 'paid-2', 'removed-1']);
  // A file that is cut off is noticed.
  const cut = take.replace('> payouts.jsonl', '| head -2 > payouts.jsonl');
  expect((await host.shell(cut)).code).not.toBe(0);
});

it('docs/redis.md has the doctor say what a service keeps', async () => {
  const [ask = ''] = await exactly(1, 'redis');
  expect(await host.run(ask)).toMatch(/^ok: Redis keeps its data, /m);
  await host.run('redis-cli CONFIG SET appendfsync everysec; redis-cli CONFIG SET maxmemory-policy allkeys-lru');
  const { code, output } = await host.shell(ask);
  expect({ code, output }).toEqual({
    code: 1,
    output: expect.stringMatching(/^problem: Redis keeps its data, .*maxmemory-policy/m),
  });
});

it('docs/http.md makes a token, and opens the door', async () => {
  const [open = ''] = await exactly(2, 'http');
  await host.addSettings('SERVE_PORT=0', 'SERVE_HEALTH_PORT=0');
  const { found, stop } = await serve(open, {}, /^([\w-]{20,})$[^]*"url":"([^"]+)"[^]*the HTTP door serves/m);
  const [, token = '', url = ''] = found;
  const response = await fetch(`${url}/v1/stats`, { headers: { authorization: `Bearer ${token}` } });
  expect({ status: response.status, body: await response.json() }).toMatchObject({
    ...{ status: 200, body: { platformId: ACCOUNT } },
  });
  await stop();
});

(isBuiltin('node:sqlite') ? it : it.skip)('docs/bookkeeping.md puts an export into SQLite', async () => {
  const [book = ''] = await exactly(1, 'bookkeeping');
  await mkdir(host.path('node_modules'));
  await symlink(ROOT, host.path('node_modules/payout-queue'));
  await producer.enqueueMany(cents(['one', 'two']).map((each) => ({ ...each, ...LATER })));
  expect(await host.run(book, { '| node ': `| ${process.execPath} ` })).toMatch(
    /^2 payouts, 0 sends, 0 acts and 2 events\.$/m,
  );
});
