import { writeFile } from 'node:fs/promises';
import { expect } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import type { Hold } from '../../../src/ledger/payout.js';
import type { PolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { openApprovalRig, RULE, type ApprovalRig } from '../../cli/support/approval-rig.js';
import { openDashboard, type RunningDashboard } from './running-dashboard.js';

/** Text that must never become a part of a page. */
export const EVIL = '<img src=x onerror=alert(1)>';

const CLOCK = { ...systemClock, advance: (): void => undefined };

/** Three dashboards of one account: with a keyring and a policy, with a keyring, and with nothing. */
export class JudgingRig {
  full!: RunningDashboard;
  keyed!: RunningDashboard;
  plain!: RunningDashboard;
  readonly rig: ApprovalRig;
  readonly sender: RedisSenderLedger;
  readonly platformId: number;
  /** Each is closed at the end, also after a failure. */
  readonly #open: RunningDashboard[] = [];

  private constructor(rig: ApprovalRig) {
    this.rig = rig;
    const { connection } = rig.account.ledger;
    this.platformId = connection.platformId;
    this.sender = new RedisSenderLedger(connection, 'reply');
  }

  static async open(): Promise<JudgingRig> {
    const judging = new JudgingRig(await openApprovalRig());
    const { rig, platformId } = judging;
    const policyFile = `${rig.keys.dir}/policy.yaml`;
    await writeFile(policyFile, policyText(platformId), { mode: 0o600 });
    const keysFile = rig.env['PAYOUT_KEYS_FILE'] ?? '';
    judging.full = await judging.start({ keysFile, policyFiles: new Map([[platformId, policyFile]]) });
    judging.keyed = await judging.start({ keysFile });
    judging.plain = await judging.start({});
    const currencies = [{ paymentId: 7, name: 'USDT', usdRate: '1.001' }];
    await writeGatewayFacts(rig.account.ledger.connection, { currencies, currenciesAt: 1 });
    return judging;
  }

  /** @param aheadMs - of the dashboard's clock */
  async start(options: Parameters<typeof openDashboard>[1], aheadMs = 0): Promise<RunningDashboard> {
    const clock = { ...CLOCK, wallNow: () => Date.now() + aheadMs };
    const started = await openDashboard({ platformId: this.platformId, clock }, options);
    this.#open.push(started);
    return started;
  }

  async close(): Promise<void> {
    await Promise.all(this.#open.map(async (dashboard) => dashboard.close()));
    await this.rig.close();
  }

  async hold(payoutId: string, of: Partial<Hold>): Promise<void> {
    await this.rig.enqueue(payoutId);
    await this.sender.holdPayout(payoutId, 0, { ...RULE, message: 'because', ...of });
  }

  /** Ann approves it. */
  async approve(payoutId: string, ...args: string[]): Promise<void> {
    await this.rig.run('approve', payoutId, '--key', this.rig.files.ann, '--yes', ...args);
  }
}

function policyText(platformId: number): string {
  const rules = [
    '{ name: four-eyes, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }',
    '{ name: hour, when: { paymentId: ["7"] }, cap: { amount: "100", within: 1h }, over: wait }',
    '{ name: btc, when: { paymentId: ["10"] }, cap: { amount: "1" }, over: refuse }',
  ];
  const head = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [Ann, Bob] }\nrules:\n`;
  return head + rules.map((rule) => `  - ${rule}\n`).join('');
}

/** What a reader sees. */
export async function readText(dashboard: RunningDashboard, path: string): Promise<string> {
  const page = await dashboard.read(path);
  expect(page).not.toContain('<img');
  const [, main = ''] = /<main[^]*?>([^]*)<\/main>/.exec(page) ?? [];
  return main
    .replace(/<caption[^]*?<\/caption>/g, '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/\s+/g, ' ');
}

const NO_RATES = { ratesAt: null, ratesMissingSince: null };

/** What a worker with a policy tells. */
export function reportOf(given: Partial<PolicyReport> = {}): PolicyReport {
  return { ...{ hash: 'ab'.repeat(32), at: Date.now() - 5_000, rules: [], held: [] }, ...NO_RATES, ...given };
}
