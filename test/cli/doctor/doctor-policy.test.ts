import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { keyEntry, testKey } from '../../control/support/keys.js';
import { problemOf, useDoctor } from '../support/doctor-rig.js';

const doctor = useDoctor();
const CAP = '{ name: day, cap: { count: 10, within: 24h }, over: wait }';
const FOUR_EYES = '{ name: two, cap: { usd: 1 }, over: { approve: { by: finance, quorum: 1 } } }';

async function writePolicy(rules = CAP, platformId = doctor.platformId): Promise<Record<string, string>> {
  const file = join(doctor.dir, 'policy.yaml');
  const text = `{ version: 1, platformId: ${platformId}, default: hold, groups: { finance: [alice, bob] }, rules: [${rules}] }`;
  await writeFile(file, text, { mode: 0o600 });
  return { PAYOUT_POLICY_FILE: file };
}

async function writeKeys(content?: string): Promise<Record<string, string>> {
  const alice = keyEntry(testKey(2), { name: 'alice', role: 'approver', person: 'alice' });
  const file = join(doctor.dir, 'keys.json');
  await writeFile(file, content ?? JSON.stringify({ version: 1, keys: [keyEntry(testKey(1)), alice] }), {
    mode: 0o600,
  });
  return { PAYOUT_KEYS_FILE: file };
}

describe('payouts doctor', () => {
  it('says nothing of a policy where there is none', async () => {
    expect((await doctor.run()).out).not.toMatch(/^. policy/m);
  });

  it('names rules, default and hash of a policy that is good', async () => {
    Object.assign(doctor.environment, await writePolicy());
    const { code, out } = await doctor.run();
    expect(code).toBe(0);
    expect(out).toMatch(/^✓ policy +1 rule in .*policy\.yaml; what no cap covers is held; hash [0-9a-f]{64}$/m);
  });

  it('names what keeps a worker from starting', async () => {
    const { code, found } = await doctor.findings(await writePolicy(FOUR_EYES, doctor.platformId + 1));
    expect(code).toBe(1);
    expect(found).toContainEqual(problemOf('policy', 'platformId must be'));
    expect(found).toContainEqual(problemOf('policy', 'needs the keyring'));
  });

  it('warns of people without a key', async () => {
    const { found } = await doctor.findings({ ...(await writePolicy(FOUR_EYES)), ...(await writeKeys()) });
    expect(found).toContainEqual(
      expect.objectContaining({ name: 'policy', status: 'warning', detail: expect.stringContaining('bob') }),
    );
  });

  it('says nothing of it where the keyring cannot be used', async () => {
    const { found } = await doctor.findings({ ...(await writePolicy(FOUR_EYES)), ...(await writeKeys('version: 2')) });
    expect(found.filter(({ name }) => name === 'policy')).toEqual([]);
    expect(found.map(({ name }) => name)).toContain('keys');
  });
});
