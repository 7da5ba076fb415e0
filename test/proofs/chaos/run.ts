import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { exitOnSignals, print, runCommand, wholeNumber, FLAG, TEXT, report, secondsSince } from '../command-line.js';
import { GATEWAY_APIS } from '../../../src/base/settings.js';
import { drawPlan, type Plan } from './plan.js';
import { runRound, type RoundResult } from './round.js';

const USAGE = `npm run chaos -- [--signed] [--rounds N] [--from SEED] [--jobs N] [--gateway v1|v2]

  --rounds N    how many rounds (200)
  --from SEED   the first round's seed; each round takes the next (1)
  --jobs N      rounds at the same time (2)
  --gateway     the API of every round (v1 and v2 by turns)
  --signed      payouts are signed, and the workers have a keyring; an operator signs, too, and decides whatever is open

With v2 the workers find by order id what the gateway has: no operator does, and nothing that it has may stay \`unknown\`.
A seed decides which faults strike and when; what they meet depends on the machine, so a failure may take some repeats.
`;

const { values } = parseArgs({
  options: {
    ...{ rounds: { ...TEXT, default: '200' }, from: { ...TEXT, default: '1' } },
    ...{ jobs: { ...TEXT, default: '2' }, signed: FLAG, gateway: TEXT, help: FLAG },
  },
});
const api = GATEWAY_APIS.find((each) => each === values.gateway);

async function main() {
  if (api !== values.gateway) throw new Error(`--gateway must be one of ${GATEWAY_APIS.join(', ')}\n${USAGE}`);
  const [from, rounds] = [wholeNumber(values.from, USAGE), wholeNumber(values.rounds, USAGE)];
  const startedAt = performance.now();
  const found: [Plan, RoundResult][] = [];
  let next = from;
  await Promise.all(
    Array.from({ length: wholeNumber(values.jobs, USAGE) }, async () => {
      while (next < from + rounds) found.push(await judge((next += 1) - 1));
    }),
  );
  const seconds = secondsSince(startedAt);
  const sum = (count: (result: RoundResult) => number) => found.reduce((all, [, each]) => all + count(each), 0);
  const gaps = ['scaled', 'real'].map((name) => {
    const own = found.flatMap(([{ timing }, result]) => (timing.name === name ? (result.smallestGapMs ?? []) : []));
    return `${name} ${Math.min(...own).toFixed(2)} ms`;
  });
  const payouts = sum(({ states }) => Object.values(states).reduce((all, each) => all + each, 0));
  const unknown = sum(({ states }) => states['unknown'] ?? 0);
  print(
    `${payouts} payouts, ${sum(({ arrivals }) => arrivals)} withdrawals; ${sum((result) => result.found)} found by order id, ${unknown} unknown in the end; smallest gaps: ${gaps.join(', ')}`,
  );
  print(`${rounds} rounds in ${seconds.toFixed(0)} s: ${(seconds / rounds).toFixed(1)} s a round`);
  const failed = sum(({ broken }) => (broken.length > 0 ? 1 : 0));
  return report(found.length - failed, failed) && found.length > 0;
}

async function judge(seed: number): Promise<[Plan, RoundResult]> {
  const plan = drawPlan(seed, values.signed, api);
  const dir = await mkdtemp(join(tmpdir(), `payouts-chaos-${seed}-`));
  const startedAt = performance.now();
  const result = await runRound(plan, dir);
  print(describe(plan, result, secondsSince(startedAt)));
  const failed = result.broken.length > 0;
  if (failed) explain(plan, result);
  if (!failed) await rm(dir, { recursive: true, force: true });
  else print(`  logs: ${dir}`);
  return [plan, result];
}

function describe({ seed, api: spoken, timing, faults }: Plan, result: RoundResult, seconds: number) {
  const { arrivals, smallestGapMs, states, found, broken } = result;
  return [
    broken.length === 0 ? 'ok    ' : 'FAILED',
    `seed ${seed} ${spoken}`.padEnd(12),
    `${seconds.toFixed(1).padStart(5)} s`,
    `${arrivals} sends`.padStart(8),
    `gap ${smallestGapMs?.toFixed(1) ?? '-'} of ${timing.minGapMs} ms`.padEnd(22),
    `${found} found, ${states['unknown'] ?? 0} unknown`.padStart(19),
    faults.map(({ kind }) => kind).join(', '),
  ].join('  ');
}

function explain({ seed, api: spoken, sharedJournal, signed }: Plan, { broken, trace, states }: RoundResult) {
  for (const text of broken) print(`  ${text}`);
  print(`  payouts: ${JSON.stringify(states)}; journals: ${sharedJournal ? 'one for all hosts' : 'one for each host'}`);
  for (const line of trace) print(`  ${line}`);
  print(`  to repeat it: npm run chaos -- ${signed ? '--signed ' : ''}--gateway ${spoken} --rounds 1 --from ${seed}`);
}

exitOnSignals();
await runCommand(main, USAGE, values.help);
