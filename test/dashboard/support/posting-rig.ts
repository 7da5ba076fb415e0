import { createPrivateKey } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { expect } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import type { Approval, SignedApproval } from '../../../src/ledger/control-record.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { openApprovalRig, type ApprovalRig } from '../../cli/support/approval-rig.js';
import { type KeyEntry, TEST_AUDIENCE } from '../../control/support/keys.js';
import { basicAuth, openDashboard, type RunningDashboard } from './running-dashboard.js';

export type Body = Readonly<Record<string, unknown>>;

/** What the dashboard responds to a post. */
export interface Reply {
  readonly status: number;
  readonly body: Body;
}

const PASSWORD = 'a long password';
export const POST_HEADERS = { authorization: basicAuth('payouts', PASSWORD), 'content-type': 'application/json' };

/** A time, as hours from now. */
export const time = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

/** A dashboard with a keyring, and those who sign approvals and bring them there. */
export class PostingRig {
  readonly clock = { ...systemClock, advance: (): void => undefined };
  readonly rig: ApprovalRig;
  readonly platformId: number;
  readonly keysFile: string;
  dashboard!: RunningDashboard;
  /** Each is closed at the end, also after a failure. */
  readonly #open: RunningDashboard[] = [];

  private constructor(rig: ApprovalRig) {
    this.rig = rig;
    this.platformId = rig.account.ledger.connection.platformId;
    this.keysFile = rig.env['PAYOUT_KEYS_FILE'] ?? '';
  }

  static async open(): Promise<PostingRig> {
    const desk = new PostingRig(await openApprovalRig());
    desk.dashboard = await desk.start({ keysFile: desk.keysFile, password: PASSWORD });
    return desk;
  }

  async start(options: Parameters<typeof openDashboard>[1]): Promise<RunningDashboard> {
    const { platformId, clock } = this;
    const started = await openDashboard({ platformId, clock }, options);
    this.#open.push(started);
    return started;
  }

  async close(): Promise<void> {
    await Promise.all(this.#open.map(async (each) => each.close()));
    await this.rig.close();
  }

  /** What `payouts approve --offline` prints. */
  async sign(payoutId: string, key: keyof ApprovalRig['files'], ...args: string[]): Promise<Body> {
    const option = key === 'bob' ? '--ssh-key' : '--key';
    const files = this.rig.files[key];
    const printed = await this.rig.run('approve', payoutId, option, files, '--yes', '--offline', ...args);
    expect(printed).toMatchObject({ code: 0 });
    return JSON.parse(printed.stdout) as Body;
  }

  async post(body: unknown, headers: Record<string, string> = {}, to = this.dashboard): Promise<Reply> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const init = { method: 'POST', headers: { ...POST_HEADERS, ...headers }, body: text };
    const response = await to.ask('/approvals', init);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    return { status: response.status, body: (await response.json()) as Body };
  }

  /** Signed with a key, whatever it says: the command would refuse to. */
  async signAs(
    key: string,
    payoutId: string,
    { platformId = this.platformId, ...change }: Partial<Approval> & { readonly platformId?: number } = {},
  ): Promise<SignedApproval> {
    const printed = await this.rig.run('approve', payoutId, '--offline', '--key-name', 'bob');
    const { intent } = JSON.parse(printed.stdout) as { intent: string };
    const times = { at: time(0), expiresAt: time(1) };
    const approval = {
      audience: TEST_AUDIENCE,
      payoutId,
      intent,
      decision: 'approve',
      by: key,
      ...times,
      ...change,
    } as const;
    const privateKey = createPrivateKey(await readFile(`${this.rig.keys.dir}/${key}.pem`));
    return { ...approval, signature: signText(formatApproval(platformId, approval), privateKey) };
  }

  /** Changes the file under the running dashboard, which reads it again within a second. */
  async changeKeyring(change: (keys: readonly KeyEntry[]) => readonly KeyEntry[]): Promise<void> {
    const { keys } = JSON.parse(await readFile(this.keysFile, 'utf8')) as { keys: readonly KeyEntry[] };
    await writeFile(this.keysFile, JSON.stringify({ version: 1, keys: change(keys) }));
    await new Promise((resolve) => setTimeout(resolve, 1_100));
  }

  async approvalsOf(payoutId: string): Promise<string[]> {
    const { approvals = [] } = await this.rig.account.ledger.require(payoutId);
    return approvals.map(({ by, decision }) => `${decision} ${by}`);
  }

  /** Asserts that nothing of the payout changed meanwhile. */
  async expectRefused(payoutId: string, work: () => Promise<Reply>, expected: object): Promise<void> {
    const { connection } = this.rig.account.ledger;
    const record = async (): Promise<unknown> => connection.redis.hgetall(connection.keys.payout(payoutId));
    const before = await record();
    expect(await work()).toMatchObject(expected);
    expect(await record()).toEqual(before);
    expect(await connection.redis.sismember(connection.keys.recheck, payoutId)).toBe(0);
  }
}
