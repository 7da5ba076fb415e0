import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { signText } from '../../src/control/keys/ed25519.js';
import { IntentSigner } from '../../src/control/intents/intent-signer.js';
import { formatReceipt } from '../../src/control/intents/receipt.js';
import { formatPublicKey } from '../../src/control/keys/signing-key.js';
import { intentOf } from '../../src/control/intents/intent.js';
import { verifyIntent } from '../../src/control/intents/verify-intent.js';
import { payoutInputSchema } from '../../src/ledger/payout.js';
import { HAS_PHP, HAS_PYTHON } from '../control/make-vectors/makers.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../control/support/keys.js';

const PLATFORM = 4242;
const privateKey = testKey(1);
let folder: string;
let pem: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signing-'));
  pem = join(folder, 'key.pem');
  writeFileSync(pem, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

interface Signed {
  readonly key: string;
  readonly signature: string;
  readonly issuedAt: string;
  readonly expiresAt: string;
  readonly audience: string;
  readonly requestedBy?: string;
}

const base = { payoutId: 'invoice-77', paymentId: 6, amount: '12.5', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
const PAYOUTS: Readonly<Record<string, object>> = {
  'the required fields': base,
  'every field': {
    ...base,
    ...{
      symbol: 'USD',
      reference: 'Rechnung für Žofie 💸 / 7',
      requestedBy: 'Żaneta Å',
      priority: 3,
      batch: 'october',
    },
    ...{
      notBefore: '2026-11-22T09:30:00.5+01:30',
      metadata: { order: 77, lines: ['a', { b: null, c: [true, {}] }, []] },
    },
  },
  'an amount with zeros behind': { ...base, amount: '12.500', notBefore: '2026-11-22T08:00:00Z' },
  'whole amounts': { ...base, amount: '100' },
  'a whole amount with zeros behind the point': { ...base, amount: '100.00' },
  'metadata that JSON can write in several ways': {
    ...base,
    metadata: {
      slash: 'a/b',
      text: '"\\\b\f\n\r\t\u0000\u001f\u007f\u0085\u2028\u2029é💸',
      '': '<&>',
      max: 2 ** 53 - 1,
      min: -7,
    },
  },
  'metadata that is text': { ...base, metadata: 'é' },
  'metadata that is null': { ...base, metadata: null },
  'metadata that is empty': { ...base, metadata: {} },
};
const REFUSED: Readonly<Record<string, readonly [object, string]>> = {
  'a fraction in the metadata': [{ ...base, metadata: { a: 1.5 } }, 'metadata'],
  'a key of digits': [{ ...base, metadata: { b: 1, 7: 2 } }, 'metadata'],
  'a line break': [{ ...base, reference: 'a\nb' }, 'reference'],
  'a line separator': [{ ...base, reference: 'a\u2028b' }, 'reference'],
  'spaces around a reference': [{ ...base, reference: 'a\u00a0' }, 'reference'],
  'an empty symbol': [{ ...base, symbol: '' }, 'symbol'],
  'an amount as a number': [{ ...base, amount: 12.5 }, 'amount'],
  'no address': [{ ...base, addressTo: undefined }, 'addressTo'],
  'a payment id as text': [{ ...base, paymentId: '6' }, 'paymentId'],
  'a local time': [{ ...base, notBefore: '2026-11-22T08:00:00' }, 'notBefore'],
  'one that is signed': [{ ...base, signature: 'x' }, 'signature'],
};
const receipt = {
  ...{ payoutId: 'invoice-77', intent: 'ab'.repeat(32), state: 'completed', attempt: 1 },
  ...{ txhash: '9f86d081', at: '2026-11-21T20:00:07.123Z' },
};

/** What our own code makes of the same payout at the same time. */
function signOurselves(payout: object, issuedAt: string): object {
  const { requestedBy, ...plain } = payout as { requestedBy?: string };
  const valid = payoutInputSchema.parse(plain);
  const metadata = valid.metadata === undefined ? undefined : JSON.stringify(valid.metadata);
  const clock = { wallNow: () => Date.parse(issuedAt) };
  const signature = new IntentSigner({
    key: { name: 'shop', privateKey },
    platformId: PLATFORM,
    audience: TEST_AUDIENCE,
    clock,
  }).sign(valid, {
    metadata,
    requestedBy,
  });
  return { ...valid, ...signature };
}

function isVerified(line: Signed): boolean {
  const { key, signature, issuedAt, expiresAt, audience, requestedBy, ...plain } = line;
  const payout = payoutInputSchema.parse(plain);
  const metadata = payout.metadata === undefined ? undefined : JSON.stringify(payout.metadata);
  const extras = { audience, metadata, requestedBy, issuedAt, expiresAt };
  const keyring = keyringOf(keyEntry(privateKey));
  return verifyIntent(intentOf(PLATFORM, payout, extras), { key, signature }, keyring, Date.now()).kind === 'verified';
}

describe.each([
  ['php', 'sign-payout.php', HAS_PHP],
  ['python3', 'sign_payout.py', HAS_PYTHON],
])('%s examples/signing/%s', (program, file, isInstalled) => {
  const ifInstalled = isInstalled ? it : it.skip;
  const path = fileURLToPath(new URL(`../../examples/signing/${file}`, import.meta.url));

  function run(args: readonly string[], input: object): { status: number | null; stdout: string; stderr: string } {
    // No locale: what it prints is UTF-8 nevertheless.
    const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], LC_ALL: 'C' };
    return spawnSync(program, [path, ...args], { input: JSON.stringify(input), encoding: 'utf8', env });
  }

  ifInstalled.each(Object.entries(PAYOUTS))('signs %s as our code does', (_, payout) => {
    const before = Date.now();
    const { status, stdout, stderr } = run(['sign', pem, 'shop', String(PLATFORM), TEST_AUDIENCE], payout);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^\{[^\n]*\}\n$/);
    const line = JSON.parse(stdout) as Signed;
    expect(Date.parse(line.issuedAt)).toBeGreaterThanOrEqual(before);
    expect(line).toEqual(signOurselves(payout, line.issuedAt));
    expect(isVerified(line)).toBe(true);
    expect(isVerified({ ...line, ...{ amount: '99' } })).toBe(false);
    expect(isVerified({ ...line, audience: 'staging' })).toBe(false);
  });

  ifInstalled.each(Object.entries(REFUSED))('refuses %s', (_, [payout, field]) => {
    const { status, stdout, stderr } = run(['sign', pem, 'shop', String(PLATFORM), TEST_AUDIENCE], payout);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^${field}: .+\n$`));
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
    const verify = (changes: object, platformId = PLATFORM, key = privateKey, audience = TEST_AUDIENCE): unknown => {
      const given = { ...receipt, signature, ...changes };
      const { status, stdout, stderr } = run(
        ['verify-receipt', formatPublicKey(key), String(platformId), audience],
        given,
      );
      return [status, stdout, stderr];
    };
    const refused = [5, 'not verified\n', ''];
    expect(verify({})).toEqual([0, 'verified\n', '']);
    expect(verify({ state: 'rejected' })).toEqual(refused);
    expect(verify({ attempt: 2 })).toEqual(refused);
    expect(verify({ txhash: 'a\nb' })).toEqual(refused);
    expect(verify({ signature: `${signature}==` })).toEqual(refused);
    expect(verify({ signature: '' })).toEqual(refused);
    expect(verify({}, PLATFORM + 1)).toEqual(refused);
    expect(verify({}, PLATFORM, testKey(2))).toEqual(refused);
    expect(verify({}, PLATFORM, privateKey, 'staging')).toEqual(refused);
  });
});
