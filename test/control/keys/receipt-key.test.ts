import { expect, describe, it } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import { InvalidConfigError } from '../../../src/base/errors.js';
import { silentLogger } from '../../../src/base/logger.js';
import { openReceiptKey } from '../../../src/control/keys/receipt-key.js';
import { keyEntry, keyringOf, testKey, type KeyEntry } from '../support/keys.js';
import { recordingLogger } from '../../gateway/support/test-client.js';

const KEY = testKey(1);
const PEM = KEY.export({ format: 'pem', type: 'pkcs8' }) as string;
const clock = { wallNow: () => Date.parse('2030-01-31T09:00:00Z') };

function open(change: Partial<KeyEntry>, name = 'worker-1', logger = silentLogger): string | undefined {
  const keyring = keyringOf(keyEntry(KEY, { name: 'worker-1', role: 'worker', person: 'Host 1', ...change }));
  return openReceiptKey({ name, privateKey: PEM }, keyring, clock, logger)?.name;
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidConfigError);
    const { message } = error as Error;
    expect(message).not.toContain('PRIVATE');
    return message;
  }
  throw new Error('it was not refused');
}

describe('the key of a worker', () => {
  it('is opened where the keyring has it as a worker, or there is no keyring', () => {
    expect(open({})).toBe('worker-1');
    expect(openReceiptKey({ name: 'any', privateKey: KEY }, undefined, clock, silentLogger)?.name).toBe('any');
    expect(openReceiptKey(undefined, undefined, clock, silentLogger)).toBeUndefined();
  });

  it.each([
    ['another role', { role: 'producer' }, 'must be a key with the role worker, not producer (got "worker-1")'],
    ['a revocation', { revoked: true }, 'must not be revoked in the keyring'],
    [
      'another name',
      { name: 'host-1' },
      'must be a key of the keyring (PAYOUT_KEYS_FILE), which has none of that name',
    ],
    ['another key', keyEntry(testKey(2), { name: 'worker-1', role: 'worker' }), 'has another public key under it'],
  ] as const)('is refused where the keyring has %s', (_name, change, message) => {
    const said = refusal(() => open(change));
    expect(said).toContain('PAYOUT_WORKER_KEY_NAME');
    expect(said).toContain(message);
  });

  it('is refused where it is no key, without showing it', () => {
    const { privateKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const broken = PEM.replace('MC4C', 'AAAA');
    const said = refusal(() => openReceiptKey({ name: 'w', privateKey: broken }, undefined, clock, silentLogger));
    expect(said).toMatch(/receiptKey\.privateKey: holds no private key/);
    expect(said).not.toContain(PEM.split('\n')[1]?.slice(10) ?? '');
    expect(refusal(() => openReceiptKey({ name: 'w', privateKey: rsa }, undefined, clock, silentLogger))).toMatch(
      /type rsa, not ed25519/,
    );
    expect(refusal(() => openReceiptKey({ name: 'w !', privateKey: PEM }, undefined, clock, silentLogger))).toMatch(
      /receiptKey\.name: must be/,
    );
  });

  it.each([
    [{ notAfter: '2030-01-30T00:00:00Z' }, 1],
    [{ notBefore: '2030-02-01T00:00:00Z' }, 1],
    [{ notBefore: '2030-01-01T00:00:00Z', notAfter: '2030-02-01T00:00:00Z' }, 0],
  ])('outside its time is a warning, because payments go on: %o', (change, warnings) => {
    const logger = recordingLogger();
    expect(open(change, 'worker-1', logger)).toBe('worker-1');
    expect(logger.lines.filter(({ message }) => message.includes('outside its time'))).toHaveLength(warnings);
  });
});
