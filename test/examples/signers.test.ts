import { createHash, createHmac, createPublicKey } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { ReceiptSigner, verifyReceipt } from '../../src/control/intents/receipt.js';
import { verifyIntent } from '../../src/control/intents/verify-intent.js';
import { intentOf } from '../../src/control/intents/intent.js';
import { bytesOf } from '../../src/control/keys/ed25519.js';
import { openSigner } from '../../src/control/keys/open-signer.js';
import { trySigner } from '../../src/control/keys/signer.js';
import { systemClock } from '../../src/base/clock.js';
import { useFolder } from '../control/support/folder.js';
import { type KeyEntry, keyEntry, keyringOf, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { signText } from '../control/support/sign-at-once.js';
import { account } from '../ledger/support/use-account.js';
import { payoutInput } from '../producer/support/payout-input.js';
import { openProducer, useProducer } from '../producer/support/use-producer.js';
import { afterTest } from '../worker/support/close-after-test.js';

/** The programs of examples/signers: a real token (SoftHSM2), and stand-ins of the clouds that verify each request. */

const folder = useFolder();
useProducer();

const program = (name: string) => fileURLToPath(new URL(`../../examples/signers/${name}`, import.meta.url));
const PATHS = (process.env['PATH'] ?? '').split(delimiter);

/** Skips loudly if a tool is missing, but not in CI. */
function ifInstalled(...tools: readonly string[]) {
  const missing = tools.filter((tool) => !PATHS.some((path) => existsSync(join(path, tool))));
  if (missing.length === 0 || process.env['CI'] !== undefined) return it;
  const advice = 'run `node scripts/setup.mjs --with-signers`';
  process.stderr.write(`SKIPPED: a signer's example, without ${missing.join(', ')}: ${advice}\n`);
  return it.skip;
}

function openExample(name: string, entry: KeyEntry, environment: Readonly<Record<string, string>>) {
  const { PATH = '', CURL_HOME = '' } = process.env;
  return openSigner(`exec:${program(name)}`, {
    name: entry.name,
    keyring: keyringOf(entry),
    environment: { PATH, CURL_HOME, ...environment },
    // The repository may belong to another user of this machine.
    allowReadableSecrets: true,
  });
}

ifInstalled('softhsm2-util', 'pkcs11-tool')(
  'a token signs payouts and receipts, with keys that were never in a file',
  async () => {
    const module = ['/usr/lib/softhsm/libsofthsm2.so', '/usr/local/lib/softhsm/libsofthsm2.so'].find(existsSync) ?? '';
    const tokens = folder.make('tokens');
    folder.write('softhsm2.conf', `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`);
    const token = { SOFTHSM2_CONF: folder.at('softhsm2.conf'), PKCS11_PIN: '1234' };
    const run = (name: string, ...args: readonly string[]) => {
      const { status, stderr } = spawnSync(name, args, { env: { ...process.env, ...token } });
      if (status !== 0) throw new Error(`${name} ${args.join(' ')}: ${String(stderr)}`);
    };
    run('softhsm2-util', '--init-token', '--free', '--label', 'payouts', '--pin', '1234', '--so-pin', '5678');
    const login = ['--module', module, '--token-label', 'payouts', '--login', '--pin', 'env:PKCS11_PIN'];
    const makeKey = (id: string, name: string, role: KeyEntry['role']): KeyEntry => {
      run('pkcs11-tool', ...login, '--keypairgen', '--key-type', 'EC:edwards25519', '--id', id, '--label', name);
      const file = folder.at(`${name}.pub`);
      run('pkcs11-tool', ...login, '--read-object', '--type', 'pubkey', '--id', id, '--output-file', file);
      const key = createPublicKey(readFileSync(file));
      return { name, role, person: name, public: `ed25519:${bytesOf(key).toString('base64')}` };
    };
    const [shop, host] = [makeKey('01', 'shop', 'producer'), makeKey('02', 'host', 'worker')];
    const open = (entry: KeyEntry, id: string) =>
      openExample('pkcs11.sh', entry, { ...token, PKCS11_MODULE: module, PKCS11_TOKEN: 'payouts', PKCS11_KEY_ID: id });

    await openProducer({ signer: open(shop, '01'), audience: TEST_AUDIENCE }).enqueue(payoutInput());
    const [payout, keyring, { platformId }] = [await account.ledger.require('p-1'), keyringOf(shop, host), account];
    const { signed } = payout;
    if (signed === undefined) throw new Error('it is not signed');
    expect(verifyIntent(intentOf(platformId, payout, signed), signed, keyring, Date.now()).kind).toBe('verified');
    const signing = { platformId, audience: TEST_AUDIENCE, keyring, clock: systemClock };
    const paid = { ...payout, state: 'completed', attempt: 1, gatewayId: 'h-1' };
    const result = await new ReceiptSigner({ ...signing, signer: open(host, '02') }).sign(paid, 'completed');
    if (result.kind !== 'signed') throw new Error(result.message);
    expect(verifyReceipt(platformId, { ...paid, receipt: result.receipt }, keyring).kind).toBe('verified');
    // The token has both keys: the other one is no signature of this one.
    await expect(open(shop, '02').sign('text')).rejects.toThrow(/is no signature of the key "shop"/);
    await expect(open(shop, '03').sign('text')).rejects.toThrow(/pkcs11\.sh ended with 1: /);
  },
);

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A service of a cloud. It verifies each request, and signs with the key of number 1. @returns its URL */
async function startService(answer: (asked: Asked) => object) {
  const faults: unknown[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const part of request.setEncoding('utf8')) body += part as string;
      const { method = '', url: path = '', headers } = request;
      try {
        response.end(JSON.stringify(answer({ method, path, headers, body })));
      } catch (error) {
        faults.push(error);
        response.writeHead(400).end(JSON.stringify({ message: 'the request is not what the service takes' }));
      }
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterTest(async () => {
    server.close();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, faults };
}

const signed = (message: unknown) =>
  Buffer.from(signText(Buffer.from(message as string, 'base64').toString('utf8'), testKey(1)), 'base64url').toString(
    'base64',
  );

async function expectSigning(name: string, environment: Readonly<Record<string, string>>, faults: readonly unknown[]) {
  const entry = keyEntry(testKey(1));
  await trySigner(openExample(name, entry, environment), keyringOf(entry).find('shop'));
  expect(faults).toEqual([]);
}

const CLOUD = ifInstalled('curl', 'jq');

const AWS = {
  AWS_REGION: 'eu-central-1',
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'wJalr/EXAMPLE+KEY',
};

/** Signature Version 4 of AWS, as its documentation describes it. */
function verifySigV4({ method, path, headers, body }: Asked) {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/kms\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
  const [, id, date = '', region = '', names = '', signature] = match.exec(headers.authorization ?? '') ?? [];
  expect([id, region]).toEqual([AWS.AWS_ACCESS_KEY_ID, AWS.AWS_REGION]);
  expect(names.split(';')).toEqual(expect.arrayContaining(['host', 'x-amz-date', 'x-amz-target']));
  const time = String(headers['x-amz-date']);
  expect(
    Math.abs(Date.parse(time.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z')) - Date.now()),
  ).toBeLessThan(60_000);
  const lines = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const request = [method, path, '', lines.join(''), names, sha256(body)].join('\n');
  const scope = `${date}/${region}/kms/aws4_request`;
  const key = [date, region, 'kms', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${AWS.AWS_SECRET_ACCESS_KEY}`);
  const text = ['AWS4-HMAC-SHA256', time, scope, sha256(request)].join('\n');
  expect(hmac(key, text).toString('hex')).toBe(signature);
}

CLOUD('aws-kms.sh asks AWS KMS for ED25519_SHA_512 over the raw text (stand-in)', async () => {
  const { url, faults } = await startService((asked) => {
    verifySigV4(asked);
    expect(asked.headers).toMatchObject({
      'x-amz-target': 'TrentService.Sign',
      'content-type': 'application/x-amz-json-1.1',
    });
    const { Message, ...rest } = JSON.parse(asked.body) as Record<string, unknown>;
    expect(rest).toEqual({ KeyId: 'alias/shop', MessageType: 'RAW', SigningAlgorithm: 'ED25519_SHA_512' });
    return { KeyId: 'alias/shop', Signature: signed(Message), SigningAlgorithm: 'ED25519_SHA_512' };
  });
  await expectSigning('aws-kms.sh', { ...AWS, KMS_KEY_ID: 'alias/shop', AWS_ENDPOINT_URL_KMS: url }, faults);
  const wrong = { ...AWS, AWS_SECRET_ACCESS_KEY: 'another', KMS_KEY_ID: 'alias/shop', AWS_ENDPOINT_URL_KMS: url };
  await expect(openExample('aws-kms.sh', keyEntry(testKey(1)), wrong).sign('text')).rejects.toThrow(/aws-kms\.sh/);
});

CLOUD('gcp-kms.sh asks Google Cloud KMS to sign the text itself (stand-in)', async () => {
  const version = 'projects/p/locations/global/keyRings/r/cryptoKeys/shop/cryptoKeyVersions/1';
  const { url, faults } = await startService(({ method, path, headers, body }) => {
    expect([method, path, headers.authorization]).toEqual(['POST', `/v1/${version}:asymmetricSign`, 'Bearer t-1']);
    const { data, ...rest } = JSON.parse(body) as Record<string, unknown>;
    expect(rest).toEqual({});
    return { signature: signed(data), name: version };
  });
  await expectSigning('gcp-kms.sh', { GCP_ACCESS_TOKEN: 't-1', KMS_KEY_VERSION: version, GCP_KMS_URL: url }, faults);
});

CLOUD('vault-transit.sh asks the transit engine of Vault (stand-in)', async () => {
  const { url, faults } = await startService(({ method, path, headers, body }) => {
    expect([method, path, headers['x-vault-token']]).toEqual(['POST', '/v1/transit/sign/shop', 's.1']);
    const { input, ...rest } = JSON.parse(body) as Record<string, unknown>;
    expect(rest).toEqual({});
    return { data: { signature: `vault:v1:${signed(input)}` } };
  });
  await expectSigning('vault-transit.sh', { VAULT_ADDR: url, VAULT_TOKEN: 's.1', VAULT_KEY: 'shop' }, faults);
});
