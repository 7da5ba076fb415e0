import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ROUTES } from '../../src/http/routes.js';
import { fuzzDoor, type OpenApi } from './fuzz/fuzz-door.js';

import { openDoor, type DoorRig } from './support/door-rig.js';

let rig: DoorRig;
let document: OpenApi & { readonly components: { readonly schemas: object } };

beforeAll(async () => {
  rig = await openDoor();
  document = (await (await fetch(`${rig.door.url}/openapi.json`)).json()) as typeof document;
});

afterAll(async () => {
  await rig.close();
});

it('the document and docs/http.md have every route, and it refers only to what it has', () => {
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(routes.sort()).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
  const rows = readFileSync(new URL('../../docs/http.md', import.meta.url), 'utf8').split('\n');
  for (const { method, path, right } of ROUTES) {
    const row = rows.find((line) => line.startsWith(`| \`${method} ${path.replace('{payoutId}', '{id}')}`));
    expect(row).toContain(`\`${right}\``);
  }
  for (const [, name = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)) {
    expect(document.components.schemas).toHaveProperty(name);
  }
});

it('2,000 requests made from the document get no 5xx, and nothing that it does not say', async () => {
  const made = { requests: 2_000, seed: 7 };
  const { statuses, wrong, accepted } = await fuzzDoor(rig.door.url, Object.values(rig.tokens), made);
  expect(wrong).toEqual([]);
  // The requests reach everything.
  expect([...statuses.keys()].sort()).toEqual(expect.arrayContaining([200, 201, 400, 401, 403, 404, 405, 409, 415]));
  expect(rig.logged.filter(({ message }) => message === 'a request failed')).toEqual([]);
  expect(accepted.size).toBeGreaterThan(4);
  for (const payoutId of accepted) {
    const found = await Promise.all(
      [rig.tokens.all, rig.tokens.other].map(async (token) =>
        rig.ask('GET', `/v1/payouts/${encodeURIComponent(payoutId)}`, { token }),
      ),
    );
    expect(found.map(({ status }) => status)).toContain(200);
  }
}, 240_000);
