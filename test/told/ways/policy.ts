import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../support/until.js';
import type { Rig } from '../support/rig.js';
import { told, type Way } from '../way.js';

/** A worker whose policy has one rule. */
export async function preparePolicy(rig: Rig, rule: string): Promise<void> {
  const file = join(rig.world.dir, 'policy.yaml');
  const text = `version: 1\nplatformId: "${rig.platformId}"\ndefault: send\nrules:\n  - ${rule}\n`;
  await writeFile(file, text, { mode: 0o600 });
  Object.assign(rig.environment, { PAYOUT_POLICY_FILE: file });
}

export async function enqueueAndWait({ world }: Rig): Promise<void> {
  await world.enqueue(1);
  await until('the payout is held', async () => (await world.producer.stats()).held === 1);
}

/** What a policy holds back. */
export const POLICY_WAYS: readonly Way[] = [
  {
    name: 'The gateway tells no rates, and a rule of the policy is in dollars',
    sandbox: { faults: [{ kind: 'json-500', endpoint: 'currencies' }] },
    prepare: async (rig) => preparePolicy(rig, '{ name: never-more, cap: { usd: "1000" }, over: refuse }'),
    happens: enqueueAndWait,
    told: told(
      'queriesFail',
      ['PayoutsRatesStale'],
      [200, 'Rates in dollars: missing'],
      [0, 'worker', 'Rates in dollars: missing'],
      'policy',
    ),
  },
  {
    name: 'A rule of the policy holds a payout',
    prepare: async (rig) => preparePolicy(rig, '{ name: denied, when: { paymentId: ["1"] }, over: refuse }'),
    happens: enqueueAndWait,
    told: told(
      'holds',
      ['PayoutsHeld'],
      [200, '1 payout held, and not sent'],
      [0, 'worker', '1 payout held, and not sent'],
      'held',
    ),
  },
];
