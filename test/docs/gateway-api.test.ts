import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ENDPOINTS } from '../../src/gateway/endpoints.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { post } from '../sandbox/support/independent-client.js';
import { createManualClock } from '../sandbox/support/manual-clock.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/gateway-api.md'), 'utf8');

/** As the page says. */
const ACCOUNT = { platformId: 1001, secretKey: 'example-secret-key', balance: '1000' };
const NO_SIGNATURE = '0'.repeat(64);

interface Example {
  readonly method: string;
  readonly path: string;
  readonly contentType: string;
  /** The body without the signature. */
  readonly payload: string;
  readonly hash: string;
  readonly response: Readonly<Record<string, unknown>>;
}

const EXAMPLE =
  /```http\n(?<method>\w+) (?<path>\S+)\nContent-Type: (?<contentType>\S+)\n\n(?<payload>\S+)&hash=(?<hash>\w+)\n```\n\n```json\n(?<response>.*?)```/gs;

/** In the page's order, in which they belong to one story. */
const examples = [...page.matchAll(EXAMPLE)].map(
  ({ groups }) => ({ ...groups, response: JSON.parse(groups?.['response'] ?? '') as object }) as Example,
);

function sign(payload: string): string {
  return createHmac('sha256', ACCOUNT.secretKey).update(payload).digest('hex');
}

/** The anchor that a heading has on the page. */
function toAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
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
    const { list: documented } = response;
    if (Array.isArray(documented)) body['list'] = (body['list'] as unknown[]).slice(0, documented.length);
    expect(body).toEqual(response);
  });

  it('of signing gives the hash of the page', () => {
    const [, payload = ''] = /payload = '(.*)'/.exec(page) ?? [];
    expect(examples.map(({ hash }) => hash)).toContain(sign(payload));
  });
});

describe('the page', () => {
  it('lists the signed fields of each endpoint in their order', () => {
    const rows = [...page.matchAll(/^\| `\/(\w+)` +\| (.*?) *\|$/gm)].map(([, path, fields]) => [path, fields]);
    const expected = Object.values(ENDPOINTS).map(({ path, signedFields }) => [
      path,
      signedFields.map((name) => `\`${name}\``).join(', '),
    ]);
    expect(rows).toEqual(expected);
  });

  it('has every section that a comment or another page refers to', async () => {
    const anchors = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => toAnchor(heading));
    const references = await findReferences();
    expect(references.length).toBeGreaterThan(15);
    expect(references.filter(({ anchor }) => !anchors.includes(anchor))).toEqual([]);
  });
});

/** Every link to a section of the page in source, tests and documents, and the page's own links. */
async function findReferences(): Promise<{ readonly file: string; readonly anchor: string }[]> {
  const found = [...page.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor = '']) => ({ file: 'the page', anchor }));
  for (const folder of ['src', 'test', 'docs']) {
    const files = await readdir(join(ROOT, folder), { recursive: true });
    for (const file of files.filter((name) => /\.(ts|mjs|md)$/.test(name))) {
      const text = await readFile(join(ROOT, folder, file), 'utf8');
      for (const [, anchor = ''] of text.matchAll(/gateway-api\.md#([\w-]+)/g)) found.push({ file, anchor });
    }
  }
  return found;
}
