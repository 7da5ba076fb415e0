import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import { defineApproveCommand } from '../../../src/cli/approvals/approvals-command.js';
import { createOutput, createProcessContext, type CliContext } from '../../../src/cli/context/cli-context.js';
import { StoppedError } from '../../../src/base/errors.js';
import { testRedisUrl } from '../../support/account.js';
import { openApprovalRig, type ApprovalRig } from '../support/approval-rig.js';

let rig: ApprovalRig;
let shown: string;
let typed: PassThrough;
let screen: PassThrough;

beforeEach(async () => {
  rig = await openApprovalRig();
  await rig.hold('p');
  shown = '';
  typed = Object.assign(new PassThrough(), { isTTY: true });
  screen = Object.assign(new PassThrough(), { isTTY: true });
});

afterEach(async () => rig.close());

/** The command as an approver at a terminal runs it. */
async function run(...args: string[]): Promise<void> {
  const context: CliContext = {
    ...createProcessContext(),
    environment: { ...rig.env, REDIS_URL: testRedisUrl() },
    terminal: { input: typed, output: screen },
    ...createOutput({
      writeOut: (text) => void (shown += text),
      writeErr: (text) => void (shown += text),
      isTerminal: true,
      isColoured: false,
    }),
    stopSignal: () => new AbortController().signal,
  };
  const program = new Command().exitOverride();
  defineApproveCommand(program.command('approve'), context);
  await program.parseAsync(['approve', ...args, '--key', rig.files.ann], { from: 'user' });
}

const asked = (): string => String(screen.read() ?? '');
const approvals = async () => (await rig.account.ledger.require('p')).approvals;

describe('payouts approve at a terminal', () => {
  it('shows the payout, says who signs for how long, and signs after a yes', async () => {
    typed.write('y\n');
    await run('p', '--expires-in', '90m');
    expect(shown).toMatch(/address +TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf\n/);
    expect(asked()).toMatch(/Approve 1 payout of account \d+ with key ann \(ann\), until .* UTC\? \[y\/N\] /);
    const [approval] = (await approvals()) ?? [];
    expect(Date.parse(approval?.expiresAt ?? '') - Date.parse(approval?.at ?? '')).toBe(90 * 60_000);
  });

  it.each([[['p']], [['p', '--offline']]])('signs nothing without a yes: %j', async (args) => {
    typed.write('n\n');
    await expect(run(...args)).rejects.toThrow(StoppedError);
    expect(await approvals()).toBeUndefined();
    expect(shown).not.toContain('signature');
  });

  it('signs what was shown, not what someone puts in its place meanwhile', async () => {
    const { connection } = rig.account.ledger;
    const running = run('p');
    for (let text = ''; !text.includes('[y/N]');) {
      text += asked();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await connection.redis.hset(connection.keys.payout('p'), { addressTo: 'TEvil' });
    typed.write('y\n');
    await running;
    expect((await rig.run('get', 'p')).stdout).toMatch(/approved by key ann: does not count, the payout itself is not/);
    await connection.redis.hset(connection.keys.payout('p'), { addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' });
    expect((await rig.run('get', 'p')).stdout).toMatch(/approved by key ann \(ann\) at/);
  });
});
