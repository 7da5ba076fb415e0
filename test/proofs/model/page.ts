import {
  check,
  type Checked,
  type Constants,
  type ModelName,
  readModel,
  type Switch,
  switchesOf,
  withConstants,
} from './checker.js';

/** Why the code has a rule, or guarantees.md an assumption, that the searches can do without. */
export const REASONS: Readonly<Record<string, string>> = {
  COMPARES:
    'the lease of a ledger that forgot: a new one would hide that the ledger is older; each worker objects besides',
  NAMES_LAST: 'a second net below ASKS_JOURNAL',
  HEARTBEAT: 'a Redis that comes back twice, and has forgotten an objection',
  ONE_SENDING: 'the pace: what an ended sender left is settled before the next send',
  NAMES_ATTEMPT: 'a begin that comes late, which must not leave a payout sending',
  ASKS_JOURNAL: 'a second net below NAMES_LAST',
  SPARES_OTHERS: 'a second net: tokens keep two attempts of one number apart',
  A2: 'the pace',
};

/** Searches; each takes a processor and some 150 MB. */
const AT_ONCE = 3;

/** Steps that every send has, or that the end of a row says. */
const ROUTINE =
  /asks Redis|comes to Redis|enters the send|writes its request|records the answer|notes the answer|is answered|arrives|reads what others|has waited|copy of Redis|a tick|begins a send|has its response|leaves its host|probe|gateway that stands|goes on, and reads/;

const ENDS: Readonly<Record<string, string>> = {
  'never twice': 'paid twice',
  'never too fast': 'too fast',
  'what is queued was not paid, unless a worker sees that Redis came back older': 'queued though paid',
};

export interface Bounds {
  readonly model: ModelName;
  readonly bounds: Constants;
  /** Switches that matter only within these bounds. @defaultValue all */
  readonly only?: readonly string[];
}

interface Row extends Switch {
  readonly model: ModelName;
  readonly found: string;
}

/** @returns docs/model.md. @param searches - the first in which something is found counts */
export async function writePage(models: readonly ModelName[], searches: readonly Bounds[]): Promise<string> {
  const rows: Row[] = [];
  for (const model of models) {
    const text = await readModel(model);
    const own = searches.filter((each) => each.model === model);
    const found: string[] = [];
    const switches = switchesOf(text);
    const next = switches.entries();
    const work = async () => {
      for (const [index, { name }] of next) found[index] = await describe(text, name, own);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    rows.push(...switches.map((each, index) => ({ ...each, model, found: found[index] ?? '' })));
  }
  const isAssumption = ({ name }: Row) => /^(A\d|UNCUT|HONEST)$/.test(name);
  const list = (of: ModelName, assumed: boolean) =>
    rows
      .filter((row) => row.model === of && isAssumption(row) === assumed)
      .map(({ name, meaning, found }) => `- **${name}:** ${meaning}. ${found}`)
      .join('\n');
  return `# What each rule of a send is for

Two models have the protocol: [send.m](../test/proofs/model/send.m) who may send, [pace.m](../test/proofs/model/pace.m) when. Here each rule, and each [assumption](guarantees.md#assumptions), was left out alone. \`npm run model -- --page\` searches and writes this page; \`-- --without NAME --trace\` prints every step. The number is that of all steps; those that every send has are left out. Bounds: two workers, one payout, two sends, one kill, one Redis that comes back older.

## Never twice, never lost: rules

${list('send', false)}

## Never twice, never lost: assumptions

${list('send', true)}

## Never too fast: rules

${list('pace', false)}

## Never too fast: assumptions

${list('pace', true)}
`;
}

function shorten(step: string): string {
  return step
    .replace(/^Redis comes back older.*/, 'Redis falls back')
    .replace(/ has no response, and resets its connection| gets no answer, and resets its connection/, ' resets')
    .replace(/takes the lease$/, 'takes over')
    .replace(/ with all journals.*|, which an ended sender left/, '')
    .replace(/says that payout 1 was not sent/, 'says "not sent"')
    .replace(/ checks its request, and is stopped before it writes/, ' stops before its write')
    .replace(/^worker ([AB])/, '$1');
}

async function describe(model: string, name: string, searches: readonly Bounds[]): Promise<string> {
  for (const { bounds, only } of searches) {
    if (only?.includes(name) === false) continue;
    const result = await check(withConstants(model, { ...bounds, [name]: false }));
    if (result.broken !== undefined) return tell(result);
  }
  const reason = REASONS[name];
  if (reason === undefined) throw new Error(`nothing is broken without ${name}, and page.ts has no reason for it`);
  return `_None found:_ for ${reason}.`;
}

function tell({ steps, broken = '' }: Checked): string {
  const isFirstLease = (step: string, index: number) =>
    step.includes('takes the lease') && steps.findIndex((each) => each.includes('takes the lease')) === index;
  const told = steps.filter((step, index) => !ROUTINE.test(step) && !isFirstLease(step, index)).map(shorten);
  const [, promise = broken] = /"(.+)"/.exec(broken) ?? [];
  const end = ENDS[promise] ?? `not "${promise}"`;
  return `_${steps.length}:_ ${[...told, `**${end}**`].join('; ')}.`;
}
