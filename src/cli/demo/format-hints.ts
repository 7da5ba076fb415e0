import { relative } from 'node:path';
import { formatTable } from '../output/format-table.js';
import type { DemoStage } from './demo-stage.js';

/** How the user calls this program: through npm in a clone, or by its name. */
export interface Callers {
  readonly demo: string;
  readonly payouts: string;
}

/** @param npmScript - the npm script that runs, if any */
export function callersOf(npmScript: string | undefined): Callers {
  return npmScript === 'demo'
    ? { demo: 'npm run demo --', payouts: 'npx payouts' }
    : { demo: 'payouts demo', payouts: 'payouts' };
}

/** What to try after the demo. */
export function formatHints({ demo }: Callers, file: string): string {
  const fromHere = relative(process.cwd(), file);
  const hints = [
    ['', `${demo} --chaos`, 'kill the worker repeatedly while it sends'],
    ['', `${demo} --forge`, 'attack payouts in Redis, with and without signing keys'],
    ['', `${demo} --policy`, 'caps, approvals, and a stolen signing key'],
    ['', `${demo} --keep`, 'keep everything running and try the other commands'],
    ['', `${demo} --payouts 60`, 'more payouts'],
    ['', fromHere.startsWith('..') ? file : fromHere, 'edit these payouts and run the demo again'],
  ];
  return `\nTry next:\n${formatTable(hints)}`;
}

/** How to use the other commands on what keeps running. */
export function formatKept({ environment, healthUrl, sandbox, worker }: DemoStage, { payouts }: Callers): string {
  const settings = Object.entries(environment).map(([name, value]) => `export ${name}=${value}\n`);
  const address = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
  const commands = [
    `${payouts} stats`,
    `${payouts} list --state completed`,
    `${payouts} enqueue --payout-id mine-1 --payment-id 6 --amount 12.5 --address-to ${address}`,
    `${payouts} get mine-1`,
    `${payouts} dashboard`,
    `curl ${sandbox.url}/__sandbox/stats`,
    `curl ${healthUrl}/metrics`,
  ];
  return `
Redis, gateway and worker (process ${worker.pid ?? 0}) keep running until Ctrl-C. In another terminal, set

${settings.join('')}
and try

${commands.map((command) => `${command}\n`).join('')}`;
}
