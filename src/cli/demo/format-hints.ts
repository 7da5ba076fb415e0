import { formatTable } from '../format-table.js';
import type { DemoStage } from './demo-stage.js';

/** How the person calls this program: through npm in a clone, or by its name. */
export interface Callers {
  readonly demo: string;
  readonly payouts: string;
}

export function callersOf(npmScript: string | undefined): Callers {
  return npmScript === 'demo'
    ? { demo: 'npm run demo --', payouts: 'npx payouts' }
    : { demo: 'payouts demo', payouts: 'payouts' };
}

/** What to try after the demo. */
export function formatHints({ demo }: Callers, file: string): string {
  const hints = [
    ['', `${demo} --chaos`, 'kill the worker again and again while it sends'],
    ['', `${demo} --keep`, 'leave everything running, and use the other commands on it'],
    ['', `${demo} --payouts 60`, 'more payouts'],
    ['', file, 'edit the payouts and run the demo again'],
  ];
  return `\nTry next:\n${formatTable(hints)}`;
}

/** How to use the other commands on what is left running. */
export function formatKept({ environment, healthUrl, worker }: DemoStage, { payouts }: Callers): string {
  const exports = Object.entries(environment).map(([name, value]) => `  export ${name}=${value}\n`);
  const hints = [
    ['', `${payouts} stats`, 'the account at a glance'],
    ['', `${payouts} list --state completed`, ''],
    [
      '',
      `${payouts} enqueue --payout-id mine-1 --payment-id 6 --amount 12.5 --address-to TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf`,
      '',
    ],
    ['', `${payouts} get mine-1`, 'its history'],
    ['', `${payouts} dashboard`, 'all of it in a browser'],
    ['', `curl ${environment['GATEWAY_BASE_URL'] ?? ''}/__sandbox/stats`, 'what the gateway saw'],
    ['', `curl ${healthUrl}/metrics`, 'what the worker measured'],
    ['', `kill -9 ${worker.pid ?? 0}`, 'the worker, which the demo does not start again now'],
  ];
  return `\nRedis, sandbox and worker go on running until Ctrl-C. In another terminal:\n\n${exports.join('')}\n${hints.map(([, command = '', what = '']) => `  ${command}${what === '' ? '' : `   # ${what}`}\n`).join('')}`;
}
