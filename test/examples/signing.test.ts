import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { intentOf } from '../../src/control/intents/intent.js';
import { formatReceipt } from '../../src/control/intents/receipt.js';
import { verifyIntent } from '../../src/control/intents/verify-intent.js';
import { formatPublicKey } from '../../src/control/keys/signing-key.js';
import { payoutInputSchema } from '../../src/ledger/payout.js';
import { writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../control/support/keys.js';
import { HAS_PHP, HAS_PYTHON } from '../control/support/vectors.js';
import { IntentSigner, signText } from '../control/support/sign-at-once.js';

const PLATFORM = 4242;
const privateKey = testKey(1);
let folder: string;
let pem: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signing-'));
  pem = await writePrivateKey(join(folder, 'key.pem'), privateKey);
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

type Signed = Record<'key' | 'signature' | 'issuedAt' | 'expiresAt' | 'audience', string> & { requestedBy?: string };

/** What every payout has besides. */
const base = { payoutId: 'invoice-77', paymentId: 6, amount: '12.5', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
const text = '"\\\b\f\n\r\t\u0000\u001f\u007f\u0085\u2028\u2029é💸';
const PAYOUTS: readonly object[] = [
  {},
  {
    ...{
      symbol: 'USD',
      reference: 'Rechnung für Žofie 💸 / 7',
      requestedBy: 'Żaneta Å',
      priority: 3,
      batch: 'october',
    },
    notBefore: '2026-11-22T09:30:00.5+01:30',
    metadata: { order: 77, lines: ['a', { b: null, c: [true, {}] }, []] },
  },
  { amount: '12.500', notBefore: '2026-11-22T08:00:00Z' },
  { amount: '100.00', metadata: { slash: 'a/b', text, '': '<&>', max: 2 ** 53 - 1, min: -7 } },
  { metadata: null },
  { metadata: {} },
];
const REFUSED: readonly object[] = [
  ...[{ metadata: { a: 1.5 } }, { metadata: { b: 1, 7: 2 } }, { reference: 'a\nb' }, { reference: 'a\u2028b' }],
  ...[{ reference: 'a\u00a0' }, { symbol: '' }, { amount: 12.5 }, { addressTo: undefined }, { paymentId: '6' }],
  ...[{ notBefore: '2026-11-22T08:00:00' }, { signature: 'x' }],
];
const receipt = {
  ...{ payoutId: 'invoice-77', intent: 'ab'.repeat(32), state: 'completed', attempt: 1 },
  ...{ gatewayId: '81', txhash: '9f86d081', at: '2026-11-21T20:00:07.123Z' },
};

function parse(plain: object) {
  const payout = payoutInputSchema.parse(plain);
  return { payout, metadata: payout.metadata === undefined ? undefined : JSON.stringify(payout.metadata) };
}

/** What our own code makes of the same payout at the same time. */
function signOurselves(given: object, issuedAt: string) {
  const { requestedBy, ...plain } = given as { requestedBy?: string };
  const { payout, metadata } = parse(plain);
  const clock = { wallNow: () => Date.parse(issuedAt) };
  const signer = { key: { name: 'shop', privateKey }, platformId: PLATFORM, audience: TEST_AUDIENCE, clock };
  return { ...payout, ...new IntentSigner(signer).sign(payout, { metadata, requestedBy }) };
}

function isVerified(line: Signed) {
  const { key, signature, issuedAt, expiresAt, audience, requestedBy, ...plain } = line;
  const { payout, metadata } = parse(plain);
  const intent = intentOf(PLATFORM, payout, { audience, metadata, requestedBy, issuedAt, expiresAt });
  const keyring = keyringOf(keyEntry(privateKey));
  return verifyIntent(intent, { key, signature }, keyring, Date.now()).kind === 'verified';
}

describe.each([
  ['php', 'sign-payout.php', HAS_PHP],
  ['python3', 'sign_payout.py', HAS_PYTHON],
])('%s examples/signing/%s', (program, file, isInstalled) => {
  const ifInstalled = isInstalled ? it : it.skip;
  const path = fileURLToPath(new URL(`../../examples/signing/${file}`, import.meta.url));

  function run(args: readonly string[], input: object) {
    // No locale: what it prints is UTF-8 nevertheless.
    const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], LC_ALL: 'C' };
    return spawnSync(program, [path, ...args], { input: JSON.stringify(input), encoding: 'utf8', env });
  }
  const sign = (payout: object) => run(['sign', pem, 'shop', String(PLATFORM), TEST_AUDIENCE], { ...base, ...payout });

  ifInstalled('signs as our code does', () => {
    for (const payout of PAYOUTS) {
      const before = Date.now();
      const { status, stdout, stderr } = sign(payout);
      expect({ payout, status, stderr }).toEqual({ payout, status: 0, stderr: '' });
      expect(stdout).toMatch(/^\{[^\n]*\}\n$/);
      const line = JSON.parse(stdout) as Signed;
      expect(Date.parse(line.issuedAt)).toBeGreaterThanOrEqual(before);
      expect(line).toEqual(signOurselves({ ...base, ...payout }, line.issuedAt));
      const verified = [line, { ...line, amount: '99' }, { ...line, audience: 'staging' }].map(isVerified);
      expect(verified).toEqual([true, false, false]);
    }
  });

  ifInstalled('refuses what our code refuses', () => {
    for (const payout of REFUSED) {
      const { status, stdout, stderr } = sign(payout);
      expect({ payout, status, stdout }).toEqual({ payout, status: 2, stdout: '' });
      expect(stderr).toMatch(new RegExp(`^${String(Object.keys(payout)[0])}: .+\n$`));
    }
  });

  ifInstalled('shows nothing of a key that it cannot use', () => {
    const other = join(folder, 'other.pem');
    const secret = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    writeFileSync(other, `-----BEGIN PRIVATE KEY-----\n${secret.slice(4)}\n-----END PRIVATE KEY-----\n`);
    const { status, stderr } = run(['sign', other, 'shop', '1', TEST_AUDIENCE], base);
    expect(status).toBe(2);
    expect(stderr).not.toContain(secret.slice(20, 30));
  });

  ifInstalled('verifies a receipt of a worker, and no other', () => {
    const signature = signText(formatReceipt(PLATFORM, { audience: TEST_AUDIENCE, ...receipt }), privateKey);
    const verify = (changes: object, platformId = PLATFORM, key = privateKey, audience = TEST_AUDIENCE) => {
      const args = ['verify-receipt', formatPublicKey(key), String(platformId), audience];
      const { status, stdout, stderr } = run(args, { ...receipt, signature, ...changes });
      return [status, stdout, stderr];
    };
    expect(verify({})).toEqual([0, 'verified\n', '']);
    for (const found of [
      ...[{ state: 'rejected' }, { attempt: 2 }, { gatewayId: 'a\nb' }, { txhash: 'another' }].map((changes) =>
        verify(changes),
      ),
      ...[`${signature}==`, ''].map((other) => verify({ signature: other })),
      ...[verify({}, PLATFORM + 1), verify({}, PLATFORM, testKey(2)), verify({}, PLATFORM, privateKey, 'staging')],
    ]) {
      expect(found).toEqual([5, 'not verified\n', '']);
    }
  });
});
