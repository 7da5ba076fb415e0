import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { keySigner } from '../../src/control/keys/signing-key.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { createPayoutWorker, type PayoutWorker } from '../../src/control/payout-worker.js';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { keyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { openDoor, payout, type DoorRig } from './support/door-rig.js';
import { LIES, openLyingProxy } from './support/lying-proxy.js';

/** What docs/http.md shows, and the clients that it names, against a real worker and a gateway. */

const page = readFileSync(new URL('../../docs/http.md', import.meta.url), 'utf8');
const clientPath = (name: string) => new URL(`../../examples/clients/${name}`, import.meta.url);

const blockOf = (language: string, index = 0) =>
  [...page.matchAll(/```(\w+)\n(.*?)```/gs)].filter(([, name]) => name === language)[index]?.[2] ?? '';

const SECRET_KEY = 'k-clients-0123456789';
const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const privateKey = testKey(1);
const ids = { plain: newPlatformId(), signed: newPlatformId() };
type Kind = keyof typeof ids;

let dir: string;
let sandbox: Sandbox;
const doors = {} as Record<Kind, DoorRig>;
const workers: PayoutWorker[] = [];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-clients-'));
  for (const name of ['payouts.php', 'payouts.py']) await copyFile(clientPath(name), join(dir, name));
  const keysFile = await writeKeyring(join(dir, 'keys.json'), [keyEntry(privateKey)]);
  await writePrivateKey(join(dir, 'shop.pem'), privateKey);
  const accounts = Object.values(ids).map((platformId) => ({ platformId, secretKey: SECRET_KEY }));
  sandbox = await startSandbox({ accounts, settleAfterMs: 100 });
  const quick = { leaseMs: 1_000, quarantineMs: 0, inFlightMaxMs: 0, pollMinMs: 200, balanceEveryMs: 0 };
  for (const [kind, platformId] of Object.entries(ids) as [Kind, number][]) {
    const journalDir = join(dir, kind);
    await (await FileSendJournal.open({ dir: journalDir, platformId })).close();
    const keys = kind === 'signed' ? { keysFile } : {};
    const platformIds = [platformId, newPlatformId()];
    const audiences = new Map(platformIds.map((each) => [each, TEST_AUDIENCE]));
    doors[kind] = await openDoor({ ...keys, platformIds, audiences });
    workers.push(
      await createPayoutWorker({
        redisUrl: testRedisUrl(),
        journalDir,
        ...keys,
        accounts: [{ ...quick, platformId, baseUrl: sandbox.url, secretKey: SECRET_KEY, audience: TEST_AUDIENCE }],
      }),
    );
  }
}, 120_000);

afterAll(async () => {
  await Promise.all(workers.map(async (worker) => worker.stop()));
  await Promise.all(Object.values(doors).map(async (door) => door.close()));
  await sandbox.close();
  await rm(dir, { recursive: true });
});

async function run(program: string, args: readonly string[], kind: Kind, url = doors[kind].door.url) {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, PAYOUTS_URL: url, PAYOUTS_TOKEN: doors[kind].tokens.all };
  return (await promisify(execFile)(program, args, { cwd: dir, env })).stdout;
}

it('curl: the lines enqueue, read, list and count', async () => {
  const script = blockOf('sh', 1).replaceAll(/^curl -sS/gm, `curl -sS -w '\\n'`);
  const lines = (await run('sh', ['-ec', script], 'plain')).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { payoutId: 'invoice-77', created: true },
    { payoutId: 'invoice-77', amount: '12.5' },
    { payouts: expect.any(Array) },
    { platformId: ids.plain },
  ]);
});

it('a door of signed payouts refuses one that is not signed', async () => {
  const ask = async ({ ask }: DoorRig) => ask('POST', '/v1/payouts', { body: payout('bare') });
  expect(await ask(doors.signed)).toMatchObject({ status: 422, body: { code: 'NOT_VERIFIED' } });
  expect((await ask(doors.plain)).status).toBe(201);
});

it('a door of signed payouts refuses a junk signature over one that waits, and nothing of it changes', async () => {
  const signer = keySigner('shop', privateKey);
  const shop = new PayoutProducer({
    redisUrl: testRedisUrl(),
    platformId: ids.signed,
    audience: TEST_AUDIENCE,
    signer,
  });
  const waits = { payoutId: 'waits', paymentId: 6, amount: '12.5', addressTo: ADDRESS };
  const given = { ...waits, notBefore: new Date(Date.now() + 86_400_000).toISOString() };
  await shop.enqueue(given);
  const before = await shop.get('waits');
  expect(before?.signed).toBeDefined();
  const years = { issuedAt: '9998-01-01T00:00:00.000Z', expiresAt: '9999-01-01T00:00:00.000Z' };
  const junk = { ...given, key: 'shop', signature: 'A'.repeat(86), audience: TEST_AUDIENCE, ...years };
  const { status, body } = await doors.signed.ask('POST', '/v1/payouts', { body: junk });
  expect({ status, body }).toMatchObject({ status: 400, body: { code: 'INVALID_INPUT' } });
  expect(await shop.get('waits')).toEqual(before);
  await shop.close();
});

const PHP = `<?php
require 'payouts.php';
[$kind, $prefix] = [$argv[1], $argv[2]];
$make = function (string $id, string $amount, array $more = []) use ($kind): array {
    $payout = ['payoutId' => $id, 'paymentId' => 6, 'amount' => $amount, 'addressTo' => '${ADDRESS}'] + $more;
    return $kind === 'plain' ? $payout : sign($payout, 'shop.pem', 'shop', (int) $GLOBALS['argv'][3], '${TEST_AUDIENCE}');
};
$paid = $make("$prefix-paid", '12.500', ['reference' => 'Rechnung 7']);
foreach (['created', 'once'] as $word) echo payouts('POST', '/v1/payouts', $paid)['created'] === ($word === 'created') ? $word : 'wrong', "\\n";
payouts('POST', '/v1/payouts', $make("$prefix-later", '1', ['notBefore' => gmdate('Y-m-d\\TH:i:s.000\\Z', time() + 86400)]));
echo payouts('POST', "/v1/payouts/$prefix-later/cancel", ['reason' => 'a test'])['state'], "\\n";
follow('0-0', function (array $event) use ($prefix): bool {
    return !(($event['payoutId'] ?? '') === "$prefix-paid" && in_array($event['to'] ?? '', ['completed', 'held', 'failed'], true));
});
echo payouts('GET', "/v1/payouts/$prefix-paid")['state'], "\\n";
try {
    payouts('POST', '/v1/payouts', ['amount' => '13'] + $make("$prefix-paid", '12.5'));
} catch (Refused $refused) {
    echo $refused->getMessage();
}
`;

const PYTHON = `
import sys
from payouts import *

kind, prefix, account = sys.argv[1], sys.argv[2], int(sys.argv[3])


def make(payout_id, amount, **more):
    payout = {"payoutId": payout_id, "paymentId": 6, "amount": amount, "addressTo": "${ADDRESS}", **more}
    return payout if kind == "plain" else sign(payout, "shop.pem", "shop", account, "${TEST_AUDIENCE}")


paid = make(prefix + "-paid", "12.500", reference="Rechnung 7")
for word in ("created", "once"):
    print(word if payouts("POST", "/v1/payouts", paid)["created"] == (word == "created") else "wrong")
tomorrow = (datetime.now(timezone.utc) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
payouts("POST", "/v1/payouts", make(prefix + "-later", "1", notBefore=tomorrow))
print(payouts("POST", f"/v1/payouts/{prefix}-later/cancel", {"reason": "a test"})["state"])
for event in follow("0-0"):
    if event.get("payoutId") == prefix + "-paid" and event.get("to") in ("completed", "held", "failed"):
        break
print(payouts("GET", f"/v1/payouts/{prefix}-paid")["state"])
try:
    payouts("POST", "/v1/payouts", {**paid, "amount": "13"})
except Refused as refused:
    print(refused)
`;

const has = (program: string, ...args: readonly string[]) => spawnSync(program, args).status === 0;

const CLIENTS: readonly (readonly [program: string, kind: Kind, script: string, has: boolean])[] = [
  ['php', 'plain', PHP, has('php', '-v')],
  ['php', 'signed', PHP, has('php', '-r', 'exit(extension_loaded("sodium") ? 0 : 1);')],
  ['python3', 'plain', PYTHON, has('python3', '-V')],
  ['python3', 'signed', PYTHON, has('python3', '-c', 'import cryptography')],
];

for (const [program, kind, script, isThere] of CLIENTS) {
  (isThere ? it : it.skip)(`${program} enqueues once, cancels and follows, ${kind}`, async () => {
    await writeFile(join(dir, program), script);
    const output = await run(program, [program, kind, `${program}-${kind}`, String(ids[kind])], kind);
    const [first, again, later, state, conflict = ''] = output.split('\n');
    expect([first, again, later, state]).toEqual(['created', 'once', 'cancelled', 'completed']);
    // What was signed says otherwise before the ledger does.
    const refusal = {
      plain: /^CONFLICT: Payout \S+-paid already exists \(completed\) with a different amount/,
      signed: /^INVALID_INPUT: signature: does not count/,
    };
    expect(conflict).toMatch(refusal[kind]);
    const amounts = sandbox.payments(ids[kind]).map(({ amount }) => amount);
    expect(new Set(amounts)).toEqual(new Set(['12.5']));
  });
}

/** Prints what becomes of each of three requests, and the amounts of the events, in order. */
const PHP_BEHIND_A_PROXY = `<?php
require 'payouts.php';
$payout = ['payoutId' => $argv[1], 'paymentId' => 6, 'amount' => '12.5', 'addressTo' => '${ADDRESS}'];
function say(array $payout): string
{
    for ($unclear = 0; ; $unclear += 1) {
        try {
            return "$unclear unclear, then " . payouts('POST', '/v1/payouts', $payout)['payoutId'] . "\\n";
        } catch (Unclear $error) {
        } catch (Refused $refused) {
            return "$unclear unclear, then {$refused->errorCode}\\n";
        }
    }
}
echo say($payout), say(['amount' => '13'] + $payout), say(['amount' => 'x'] + $payout);
$states = [];
follow('0-0', function (array $event) use (&$states, $payout): bool {
    if (($event['payoutId'] ?? '') === $payout['payoutId'] && ($event['type'] ?? '') === 'state') $states[$event['id']] = $event['to'];
    return !in_array('completed', $states, true);
});
echo implode(' ', $states), "\\n";
`;

const PYTHON_BEHIND_A_PROXY = `
import sys
from payouts import *

payout = {"payoutId": sys.argv[1], "paymentId": 6, "amount": "12.5", "addressTo": "${ADDRESS}"}


def say(payout):
    unclear = 0
    while True:
        try:
            return f"{unclear} unclear, then {payouts('POST', '/v1/payouts', payout)['payoutId']}"
        except Unclear:
            unclear += 1
        except Refused as refused:
            return f"{unclear} unclear, then {refused.code}"


for changes in ({}, {"amount": "13"}, {"amount": "x"}):
    print(say({**payout, **changes}))
states = {}
for event in follow("0-0"):
    if event.get("payoutId") == payout["payoutId"] and event.get("type") == "state":
        states[event["id"]] = event["to"]
    if "completed" in states.values():
        break
print(*states.values())
`;

for (const [program, script] of [
  ['php', PHP_BEHIND_A_PROXY],
  ['python3', PYTHON_BEHIND_A_PROXY],
] as const) {
  (has(program, '-h') ? it : it.skip)(`${program} asks again whatever a proxy says, and misses no event`, async () => {
    const proxy = await openLyingProxy(doors.plain.door.url);
    try {
      const payoutId = `${program}-behind-a-proxy`;
      await writeFile(join(dir, 'behind'), script);
      const output = await run(program, ['behind', payoutId], 'plain', proxy.url);
      const lies = `${LIES.length} unclear, then`;
      expect(output.trim().split('\n')).toEqual([
        `${lies} ${payoutId}`,
        `${lies} CONFLICT`,
        `${lies} INVALID_INPUT`,
        'queued sending in_progress completed',
      ]);
      expect(proxy.streams()).toBeGreaterThan(2);
    } finally {
      await proxy.close();
    }
  });
}

for (const [program, language] of [
  ['php', 'php'],
  ['python3', 'python'],
] as const) {
  (has(program, '-h') ? it : it.skip)(`${program}: the loop that the page shows enqueues`, async () => {
    await writeFile(join(dir, 'loop'), blockOf(language));
    expect(await run(program, ['loop'], 'plain')).toMatch(/^(queued|sending|in_progress|completed)\n$/);
  });
}
