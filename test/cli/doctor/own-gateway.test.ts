import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { readWorkerAccounts } from '../../../src/cli/context/accounts.js';
import { createPayoutWorker } from '../../../src/control/payout-worker.js';
import { ACME_SECRET, startAcme } from '../../examples/support/acme-server.js';
import { until } from '../../support/until.js';
import { afterTest, closeAfterTest } from '../../worker/support/close-after-test.js';
import { problemOf, useDoctor } from '../support/doctor-rig.js';

/** `payouts doctor` for an account with a gateway of its own: the one of examples/own-gateway.ts. */

const doctor = useDoctor();
const EXAMPLE = fileURLToPath(new URL('../../../examples/own-gateway.ts', import.meta.url));

let acme: Awaited<ReturnType<typeof startAcme>>;

interface Module {
  readonly id?: string;
  readonly secret?: string;
}

/** Node loads a path once, so each module has its own. */
let modules = 0;

async function writeGateway({ id = 'acme', secret = ACME_SECRET }: Module = {}) {
  modules += 1;
  const name = `gateway-${modules}.mjs`;
  const options = JSON.stringify({ baseUrl: acme.url, secret });
  const text = `import { createAcmeGateway } from ${JSON.stringify(EXAMPLE)};
export default { ...createAcmeGateway(${options}), id: ${JSON.stringify(id)} };`;
  await writeFile(join(doctor.dir, name), text, { mode: 0o600 });
  return name;
}

/** The account's environment with this gateway, as a worker's: the file alone, or an accounts file that names it. */
async function useGateway(by: 'GATEWAY_FILE' | 'PAYOUT_ACCOUNTS_FILE', module?: Module) {
  const name = await writeGateway(module);
  const { REDIS_URL = '', SEND_JOURNAL_DIR = '', GATEWAY_PLATFORM_ID = '' } = doctor.environment;
  doctor.environment = { REDIS_URL, SEND_JOURNAL_DIR, PAYOUT_AUDIENCE: '' };
  if (by === 'GATEWAY_FILE') {
    Object.assign(doctor.environment, { GATEWAY_PLATFORM_ID, GATEWAY_FILE: join(doctor.dir, name) });
    return;
  }
  const file = join(doctor.dir, `accounts-${modules}.json`);
  await writeFile(file, JSON.stringify([{ platformId: doctor.platformId, gateway: name }]), { mode: 0o600 });
  doctor.environment['PAYOUT_ACCOUNTS_FILE'] = file;
}

async function checks() {
  const { code, out } = await doctor.run('--json');
  expect(out).not.toContain(ACME_SECRET);
  const { checks: all } = JSON.parse(out) as { checks: (CheckResult & { readonly name: string })[] };
  return { code, of: (name: string) => all.filter((check) => check.name === name) };
}

/** A worker of the environment's account that pays one payout. */
async function sendOne(payoutId: string) {
  const worker = await createPayoutWorker({
    ...{ redisUrl: doctor.redis.url, journalDir: join(doctor.dir, 'journal') },
    accounts: (await readWorkerAccounts(doctor.environment)).map((account) => ({
      ...{ ...account, leaseMs: 1_000, quarantineMs: 0, pollMinMs: 100 },
    })),
  });
  const producer = doctor.openProducer();
  await producer.enqueue({ payoutId, paymentId: 6, amount: '1', addressTo: 'wallet' });
  return { worker, producer };
}

beforeEach(async () => {
  acme = closeAfterTest(await startAcme());
});

describe.each(['GATEWAY_FILE', 'PAYOUT_ACCOUNTS_FILE'] as const)('a gateway of %s', (by) => {
  it('is named, reached and asked', async () => {
    await useGateway(by);
    const { code, of } = await checks();
    expect(code).toBe(0);
    expect(of('gateway connection')).toMatchObject([
      { status: 'ok', detail: 'reachable, by the gateway acme of your own' },
    ]);
    expect(of('gateway account')).toMatchObject([{ status: 'ok', detail: 'acme knows the account' }]);
    expect(of('gateway currencies')).toMatchObject([{ status: 'ok' }]);
    const detail = `"own:acme#${doctor.platformId} (own:acme)"`;
    expect(of('audience')).toMatchObject([{ status: 'ok', detail: expect.stringContaining(detail) as unknown }]);
    expect(acme.payments()).toEqual([]);
  });

  it('is a problem by its name while it cannot be reached, or refuses', async () => {
    await useGateway(by, { secret: 'not-the-secret-of-acme' });
    const fix = 'Check the gateway acme: see docs/own-gateway.md.';
    const refused = await checks();
    expect([refused.code, refused.of('gateway account')]).toMatchObject([
      ...[1, [{ status: 'problem', fix, detail: 'The gateway refused /readBalances: wrong signature' }]],
    ]);
    acme = await startAcme();
    await acme.close();
    await useGateway(by);
    const down = await checks();
    expect([down.code, down.of('gateway connection')]).toMatchObject([
      ...[1, [{ status: 'problem', fix, detail: expect.stringContaining('127.0.0.1') as unknown }]],
    ]);
    expect(down.of('gateway account')).toEqual([]);
  });
});

it('refuses a module that is no gateway, by its setting', async () => {
  await useGateway('GATEWAY_FILE', { id: 'no id' });
  const { code, out, err } = await doctor.run();
  expect([code, out]).toEqual([2, '']);
  expect(err).toMatch(/GATEWAY_FILE: default export of .*gateway-\d+\.mjs: id must be 1 to 64 of .* \(got "no id"\)/);
});

it('an account whose ledger is bound to one gateway is refused by another, of your own or not, which sends nothing', async () => {
  const ofSandbox = { ...doctor.environment };
  await useGateway('GATEWAY_FILE');
  const { worker, producer } = await sendOne('P-1');
  await until('it is paid', async () => (await producer.stats()).completed === 1);
  await worker.stop();
  const own = `own:acme#${doctor.platformId} (own:acme)`;
  expect((await checks()).of('audience')).toMatchObject([
    { status: 'ok', detail: `"${own}"; the ledger is bound to it` },
  ]);

  // Another gateway of one's own at the same address, then the gateway's own API.
  await useGateway('GATEWAY_FILE', { id: 'acme-2' });
  const other = `own:acme-2#${doctor.platformId} (own:acme-2)`;
  const { code, found: refused } = await doctor.findings();
  expect(code).toBe(1);
  expect(refused).toContainEqual(
    problemOf('audience', `has the payouts of "${own}", and this worker pays at "${other}"`),
  );
  const second = await sendOne('P-2');
  afterTest(async () => second.worker.stop());
  afterTest(async () => second.producer.close());
  await until('it refuses', () => second.worker.accounts[0]?.status.role === 'refused');
  expect(second.worker.accounts[0]?.status).toMatchObject({ cause: 'gateway' });

  doctor.environment = ofSandbox;
  const { found } = await doctor.findings();
  expect(found).toContainEqual(problemOf('audience', `has the payouts of "${own}"`));
  expect(acme.payments()).toHaveLength(1);
  expect(doctor.sandbox.stats().arrivals).toBe(0);
  expect((await producer.get('P-2'))?.state).toBe('queued');
  await producer.close();
});

it('an account of the API is refused by a gateway of your own, also under the same audience', async () => {
  const { PAYOUT_AUDIENCE: audience = '' } = doctor.environment;
  const { worker, producer } = await sendOne('P-1');
  await until('it is sent', () => doctor.sandbox.payments().length === 1);
  await until('it is bound', async () => (await producer.stats()).queued === 0);
  await worker.stop();
  await producer.close();
  await useGateway('GATEWAY_FILE');
  doctor.environment['PAYOUT_AUDIENCE'] = audience;
  const { code, found } = await doctor.findings();
  expect(code).toBe(1);
  const detail = `has the payouts of "${audience}", and this worker pays at "${audience} (own:acme)"`;
  expect(found).toContainEqual(problemOf('audience', detail));
  expect(acme.payments()).toEqual([]);
});
