import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ENDPOINTS } from '../../src/gateway/endpoints.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { post } from '../sandbox/support/independent-client.js';
import { createManualClock } from '../sandbox/support/running-sandbox.js';

const page = readFileSync(new URL('../../docs/gateway-api.md', import.meta.url), 'utf8');

/** As the page says. */
const ACCOUNT = { platformId: 1001, secretKey: 'example-secret-key', balance: '1000' };
const NO_SIGNATURE = '0'.repeat(64);

/** In the page's order, in which they belong to one story. The payload is the body without the signature. */
const examples = [
  ...page.matchAll(/```http\n(\w+) (\S+)\nContent-Type: (\S+)\n\n(\S+)&hash=(\w+)\n```\n\n```json\n(.*?)```/gs),
].map(([, method, path = '', contentType, payload = '', hash = '', response = '']) => ({
  ...{ method, path, contentType, payload, hash },
  response: JSON.parse(response) as Readonly<Record<string, unknown>>,
}));

function sign(payload: string): string {
  return createHmac('sha256', ACCOUNT.secretKey).update(payload).digest('hex');
}

describe('the examples', () => {
  const clock = createManualClock();
  let sandbox: Sandbox;
  /** What the sandbox returned in place of the page's transaction. */
  let txhashes: readonly [documented: string, actual: string] = ['', ''];

  beforeAll(async () => {
    sandbox = await startSandbox({ accounts: [ACCOUNT], clock });
  });

  afterAll(async () => {
    await sandbox.close();
  });

  it('are all found, with one for each endpoint', () => {
    expect(examples).toHaveLength(page.match(/```http\n/g)?.length ?? 0);
    expect(examples).toHaveLength(page.match(/```json\n/g)?.length ?? 0);
    const paths = new Set(examples.map(({ path }) => path));
    expect(paths).toEqual(new Set(Object.values(ENDPOINTS).map(({ path }) => `/${path}`)));
  });

  it.each(examples)('$path, $payload', async (example) => {
    const { method, path, contentType, payload, hash, response } = example;
    expect([method, contentType]).toEqual(['POST', 'application/x-www-form-urlencoded']);
    expect([NO_SIGNATURE, sign(payload)]).toContain(hash);

    const actualPayload = payload.replace(...txhashes);
    const actualHash = hash === NO_SIGNATURE ? hash : sign(actualPayload);
    const reply = await post(`${sandbox.url}${path}`, `${actualPayload}&hash=${actualHash}`);
    const body = (await reply.json()) as Record<string, unknown>;

    expect(reply.status).toBe(200);
    if (path === '/withdraw' && body['result'] === 1) txhashes = [String(response['txhash']), String(body['txhash'])];
    if (body['txhash'] === txhashes[1]) body['txhash'] = txhashes[0];
    const documented = response['list'];
    if (Array.isArray(documented)) body['list'] = (body['list'] as unknown[]).slice(0, documented.length);
    expect(body).toEqual(response);
  });

  it('of signing gives the hash of the page', () => {
    const [, payload = ''] = /payload = '(.*)'/.exec(page) ?? [];
    expect(examples.map(({ hash }) => hash)).toContain(sign(payload));
  });
});

it('the page lists the signed fields of each endpoint in their order', () => {
  const rows = [...page.matchAll(/^\| `\/(\w+)` +\| (.*?) *\|$/gm)].map(([, path, fields]) => [path, fields]);
  const expected = Object.values(ENDPOINTS).map(({ path, signedFields }) => [
    path,
    signedFields.map((name) => `\`${name}\``).join(', '),
  ]);
  expect(rows).toEqual(expected);
});
