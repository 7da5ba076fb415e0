import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { InvalidConfigError } from '../../src/base/errors.js';
import { type DoorOptions, type RunningDoor, startDoor } from '../../src/http/start-door.js';
import { createToken } from '../../src/http/tokens.js';
import { makeSelfSignedCertificate } from '../gateway/support/self-signed-certificate.js';
import { newPlatformId } from '../support/account.js';
import { type RunningCli, startCli } from '../support/cli.js';
import { askDoor, doorOptions, payout } from './support/door-rig.js';

let dir: string;
let tokensFile: string;
let cert: string;
let key: string;
const platformId = newPlatformId();
const { token, line } = createToken({ name: 'shop', account: platformId, rights: ['read', 'enqueue'] });

async function makeCertificate(certFile = cert, keyFile = key) {
  const made = makeSelfSignedCertificate();
  await writeFile(certFile, made.cert);
  await writeFile(keyFile, made.key, { mode: 0o600 });
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-listening-'));
  [tokensFile, cert, key] = [join(dir, 'tokens.yaml'), join(dir, 'cert.pem'), join(dir, 'key.pem')];
  await writeFile(tokensFile, `${line}\n`, { mode: 0o600 });
  await makeCertificate();
});

afterAll(async () => rm(dir, { recursive: true }));

async function withDoor(changes: Partial<DoorOptions>, use: (door: RunningDoor) => Promise<void>) {
  const door = await startDoor(doorOptions(tokensFile, { platformIds: [platformId], ...changes }));
  try {
    await use(door);
  } finally {
    await door.close();
  }
}

async function refusal(changes: Partial<DoorOptions>) {
  const error: unknown = await withDoor(changes, async () => Promise.resolve()).catch((thrown: unknown) => thrown);
  if (!(error instanceof InvalidConfigError)) throw new Error(`it started, or threw ${String(error)}`);
  return error.message;
}

it('without TLS it does not start where other machines can reach it, and says why', async () => {
  for (const serveHost of ['0.0.0.0', '::', '192.0.2.1', 'localhost.example']) {
    expect(await refusal({ serveHost })).toMatch(
      /^SERVE_HOST: is .+ which other machines can reach.+SERVE_TLS_CERT_FILE.+SERVE_TRUSTED_PROXIES.+127\.0\.0\.1$/,
    );
  }
});

it('without TLS it serves a named proxy that had TLS itself, and nobody else', async () => {
  const forbidden = (detail: string): object => ({
    ...{ status: 403, body: { code: 'FORBIDDEN', detail: expect.stringContaining(detail) } },
  });
  for (const [last, isNamed] of [
    ['loopback', true],
    ['linklocal', false],
  ] as const)
    await withDoor({ serveHost: '0.0.0.0', serveTrustedProxies: ['10.0.0.0/8', last] }, async ({ url }) => {
      const ask = async (path: string, headers: Record<string, string> = {}) =>
        askDoor(url.replace('0.0.0.0', '127.0.0.1'), 'GET', path, { token, headers });
      const good = isNamed ? { status: 200 } : forbidden('SERVE_TRUSTED_PROXIES');
      const unsaid = forbidden(isNamed ? 'let it set X-Forwarded-Proto' : 'SERVE_TRUSTED_PROXIES');
      for (const path of ['/v1/stats', '/openapi.json']) expect(await ask(path)).toMatchObject(unsaid);
      expect(await ask('/v1/stats', { 'x-forwarded-proto': 'https' })).toMatchObject(good);
      const plain = forbidden(isNamed ? 'came to the proxy without TLS' : 'SERVE_TRUSTED_PROXIES');
      expect(await ask('/v1/stats', { 'x-forwarded-proto': 'http' })).toMatchObject(plain);
    });
});

const tls = (): Partial<DoorOptions> => ({ serveHost: '0.0.0.0', serveTlsCertFile: cert, serveTlsKeyFile: key });

async function ask(url: string): Promise<readonly [number | undefined, string]> {
  const options = { rejectUnauthorized: false, agent: false, headers: { authorization: `Bearer ${token}` } };
  const asked = get(`${url.replace('0.0.0.0', '127.0.0.1')}/v1/stats`, options);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const socket = response.socket as unknown as Pick<TLSSocket, 'getPeerCertificate'>;
  const { serialNumber } = socket.getPeerCertificate();
  await once(response.resume(), 'end');
  return [response.statusCode, serialNumber];
}

it('with TLS it serves on any address, and a renewed certificate after SIGHUP', async () => {
  await withDoor(tls(), async (door) => {
    expect(door.url).toMatch(/^https:/);
    const before = await ask(door.url);
    expect(before[0]).toBe(200);
    await expect(fetch(door.url.replace('https://0.0.0.0', 'http://127.0.0.1'))).rejects.toThrow();
    await makeCertificate();
    door.reload();
    const after = await ask(door.url);
    expect(after).toEqual([200, expect.not.stringMatching(before[1])]);
    await writeFile(cert, 'broken');
    door.reload();
    expect(await ask(door.url)).toEqual(after);
  });
  await makeCertificate();
});

it('with TLS it does not start without both files, or with a key that is open or another', async () => {
  const refusalOf = async (changes: Partial<DoorOptions> = {}) => refusal({ ...tls(), ...changes });
  const without = /^SERVE_TLS_KEY_FILE: is required, because SERVE_TLS_CERT_FILE is set/;
  expect(await refusalOf({ serveTlsKeyFile: undefined })).toMatch(without);
  expect(await refusalOf({ serveTlsCertFile: undefined })).toMatch(/^SERVE_(TLS_CERT_FILE: is required|HOST)/);
  await chmod(key, 0o644);
  expect(await refusalOf()).toMatch(/^SERVE_TLS_KEY_FILE: .+ is open to every user/);
  await chmod(key, 0o600);
  const serveTlsCertFile = join(dir, 'other-cert.pem');
  await makeCertificate(serveTlsCertFile, join(dir, 'other-key.pem'));
  expect(await refusalOf({ serveTlsCertFile })).toMatch(/^SERVE_TLS_CERT_FILE: cannot be used with its key/);
});

const serve = (changes: Record<string, string> = {}): RunningCli =>
  startCli(['serve'], {
    env: {
      ...{ GATEWAY_PLATFORM_ID: String(platformId), SERVE_TOKENS_FILE: tokensFile },
      ...{ SERVE_PORT: '0', SERVE_HEALTH_PORT: '0', ...changes },
    },
  });

it('payouts serve does not start with the gateway’s secret, nor without tokens', async () => {
  const refused = (stderr: string): object => ({ code: 2, stderr: expect.stringContaining(stderr) });
  const secretive = await serve({ GATEWAY_SECRET_KEY: 'k-secret-0123' }).result;
  expect(secretive).toMatchObject(refused('GATEWAY_SECRET_KEY: must not be set'));
  expect(secretive.stderr).not.toContain('k-secret-0123');
  expect(await serve({ SERVE_TOKENS_FILE: '' }).result).toMatchObject(refused('SERVE_TOKENS_FILE: is required'));
});

it('payouts serve serves until SIGTERM, and reads the tokens again on SIGHUP', async () => {
  const running = serve({ GATEWAY_SECRET_KEY_FILE: '/nowhere/key' });
  await running.waitForOutput(/the HTTP door serves/);
  running.kill('SIGHUP');
  await running.waitForOutput(/the tokens were read again/);
  running.kill('SIGTERM');
  expect((await running.result).code).toBe(0);
});

it('answers what it has begun before it stops', async () => {
  const door = await startDoor(doorOptions(tokensFile, { platformIds: [platformId] }));
  const asked = Array.from({ length: 50 }, async (_, index) =>
    askDoor(door.url, 'POST', '/v1/payouts', { token, body: payout(`stop-${index}`) }),
  );
  const settled = Promise.allSettled(asked);
  // One answer shows that the others have arrived, or are refused as connections.
  await asked[0];
  await door.close();
  const answers = (await settled).flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  expect(answers.length).toBeGreaterThan(0);
  for (const { status } of answers) expect(status).toBe(201);
});
