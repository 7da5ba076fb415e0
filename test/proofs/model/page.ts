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
  COMPARES: 'a ledger that forgot, which a new lease would hide',
  NAMES_LAST: 'a second net below ASKS_JOURNAL',
  HEARTBEAT: 'a second fall that forgot an objection',
  ONE_SENDING: 'the pace: leftovers are settled before the next send',
  NAMES_ATTEMPT: 'a late begin, which must not leave a payout sending',
  ASKS_JOURNAL: 'a second net below NAMES_LAST',
  SPARES_OTHERS: 'a second net beside tokens',
  FINDS_AS_LATE: 'an end given meanwhile, which a late answer must not undo',
  A2: 'the pace',
};

/** Searches; each takes a processor and some 150 MB. */
const AT_ONCE = 3;

/** Steps that every send has, or that the end of a row says. */
const ROUTINE =
  /asks Redis|comes to Redis|enters the send|writes its request|records the answer|notes the answer|is answered|arrives|reads what others|has waited|copy of Redis|a tick|begins a send|has its response|leaves its host|probe|gateway that stands|goes on, and reads|^the janitor/;

const ENDS: Readonly<Record<string, string>> = {
  'never twice': 'paid twice',
  'never too fast': 'too fast',
  'what is in progress or completed was paid': 'in progress though not paid',
  'what is queued was not paid, unless a worker sees that Redis came back older': 'queued though paid',
};

export interface Bounds {
  readonly model: ModelName;
  readonly bounds: Constants;
  /** Switches that matter only within these bounds. @defaultValue those that no other search names */
  readonly only?: readonly string[];
}

interface Row extends Switch {
  readonly model: ModelName;
  readonly found: string;
}

/** @returns docs/model.md. @param searches - the first for a switch in which something is found counts.
 * @param isQuick - a switch that has a reason is not searched: only those searches end late */
export async function writePage(
  models: readonly ModelName[],
  searches: readonly Bounds[],
  isQuick: boolean,
): Promise<string> {
  const rows: Row[] = [];
  for (const model of models) {
    const text = await readModel(model);
    const own = searches.filter((each) => each.model === model);
    const found: string[] = [];
    const switches = switchesOf(text);
    const next = switches.entries();
    const work = async () => {
      for (const [index, { name }] of next) found[index] = await describe(text, name, own, isQuick);
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
    .replace(/an operator says that payout 1 was not sent/, 'operator: "not sent"')
    .replace(/ after it objected/, '')
    .replace(/what the janitor asks for/, 'it')
    .replace(/ checks its request, and is stopped before it writes/, ' stops before its write')
    .replace(/^worker ([AB])/, '$1');
}

async function describe(model: string, name: string, searches: readonly Bounds[], isQuick: boolean): Promise<string> {
  const reason = REASONS[name];
  const nothing = `_None found:_ for ${reason ?? ''}.`;
  if (isQuick && reason !== undefined && searches.every((each) => each.model === 'send')) return nothing;
  const own = searches.filter(({ only }) => only?.includes(name) === true);
  for (const { bounds } of own.length > 0 ? own : searches.filter(({ only }) => only === undefined)) {
    const result = await check(withConstants(model, { ...bounds, [name]: false }), '-O1');
    if (result.broken !== undefined) return tell(result);
  }
  if (reason === undefined) throw new Error(`nothing is broken without ${name}, and page.ts has no reason for it`);
  return nothing;
}

function tell({ steps, broken = '' }: Checked): string {
  const isFirstLease = (step: string, index: number) =>
    step.includes('takes the lease') && steps.findIndex((each) => each.includes('takes the lease')) === index;
  const told = steps.filter((step, index) => !ROUTINE.test(step) && !isFirstLease(step, index)).map(shorten);
  const [, promise = broken] = /"(.+)"/.exec(broken) ?? [];
  const end = ENDS[promise] ?? `not "${promise}"`;
  return `_${steps.length}:_ ${[...told, `**${end}**`].join('; ')}.`;
}
