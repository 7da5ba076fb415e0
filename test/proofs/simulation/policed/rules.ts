import { parsePolicy, type Policy } from '../../../../src/control/policy/policy.js';
import type { Random } from '../../../doubles/random.js';
import { walletOf } from '../../../world/worker.js';
import { WALL_START, type World, type WorldProcess } from '../../../world/world.js';
import { PLATFORM_ID } from '../signed/control.js';

type OpenMinutes = readonly (readonly [from: number, to: number])[];

/** A rule as the judge understands it: the policy file is written from it, and never read back. */
export type SimRule = Readonly<{
  name: string;
  currency?: 7 | 8;
  usdAbove?: string;
  isListed?: true;
  cap?: Readonly<{ unit: 'usd' | 'amount' | 'count'; limit: string; withinMs?: number; per?: 'address' }>;
  open?: OpenMinutes;
  /** Refused, held until there is room or it is time, held until so long after its address was seen, or for approvals. */
  over: 'refuse' | 'wait' | { readonly coolMs: number } | { readonly quorum: 1 | 2 };
}>;

interface RateRules {
  readonly maxAgeMs: number;
  readonly maxMovePercent: number;
}

export type SimRules = Readonly<{
  rules: readonly SimRule[];
  rates: RateRules | undefined;
  uncovered: 'hold' | 'send';
}>;

export const LIST = 'list.txt';
export const LISTED = walletOf('c');

export const APPROVERS: readonly string[] = ['Ann', 'Bob', 'Cy', 'Dee', 'Shop'];

export function drawWindow(random: Random): SimRules {
  const limit = String(random.pick([20, 40, 100]));
  const withinMs = random.pick([5_000, 20_000, 60_000]);
  const rule = { name: 'window', currency: 7, cap: { unit: 'amount', limit, withinMs }, over: 'wait' } as const;
  return { rules: [rule], rates: undefined, uncovered: 'hold' };
}

export function drawRules(random: Random, isSigned: boolean): SimRules {
  const inDollars = random.chance(0.4);
  const templates = inDollars ? dollarRules(random) : amountRules(random);
  const others = [...templates, ...timeRules(random, inDollars)];
  const first = isSigned ? approvalRule(random, inDollars) : random.pick(templates);
  const rules = [first, ...Array.from({ length: random.whole(1, 3) }, () => random.pick(others))];
  return {
    rules: rules.map((rule, number) => ({ ...rule, name: `r${number}` })),
    rates: inDollars ? { maxAgeMs: random.pick([20_000, 360_000, 360_000]), maxMovePercent: 25 } : undefined,
    uncovered: random.chance(0.5) && rules.some(coversAll) ? 'hold' : 'send',
  };
}

type Template = Omit<SimRule, 'name'>;

function approvalRule(random: Random, inDollars: boolean): Template {
  const over = { quorum: random.pick([1, 2, 2] as const) };
  return random.pick<Template>([
    inDollars
      ? { cap: { unit: 'usd', limit: '20' }, over }
      : { currency: 7, cap: { unit: 'amount', limit: '8' }, over },
    { isListed: true, over },
    { cap: { unit: 'count', limit: '1', withinMs: 20_000 }, over },
  ]);
}

function amountRules(random: Random): Template[] {
  const withinMs = random.pick([5_000, 20_000, 60_000]);
  const limit = String(random.pick([20, 40]));
  return [
    { currency: 7, cap: { unit: 'amount', limit, withinMs }, over: 'wait' },
    { currency: 7, cap: { unit: 'amount', limit: '12', withinMs, per: 'address' }, over: 'wait' },
    { currency: 7, cap: { unit: 'amount', limit: '18' }, over: 'refuse' },
    { currency: 7, cap: { unit: 'amount', limit: '20', withinMs }, over: 'refuse' },
    { cap: { unit: 'count', limit: '2', withinMs: 10_000 }, over: 'wait' },
  ];
}

function dollarRules(random: Random): Template[] {
  const withinMs = random.pick([5_000, 20_000, 60_000]);
  return [
    { cap: { unit: 'usd', limit: random.pick(['60', '120']), withinMs }, over: 'wait' },
    { cap: { unit: 'usd', limit: '80', withinMs, per: 'address' }, over: 'wait' },
    { cap: { unit: 'usd', limit: '70' }, over: 'refuse' },
    { usdAbove: '10', cap: { unit: 'count', limit: '1', withinMs: 10_000 }, over: 'wait' },
  ];
}

function timeRules(random: Random, inDollars: boolean): Template[] {
  const above = inDollars && random.chance(0.5) ? { usdAbove: '10' } : {};
  return [
    { ...above, open: random.pick(OPEN), over: 'wait' },
    { ...above, open: random.pick(OPEN), over: 'refuse' },
    { ...above, over: { coolMs: random.pick([5_000, 30_000]) } },
    { isListed: true, over: 'refuse' },
  ];
}

const OPEN: readonly OpenMinutes[] = [
  [
    [1, 2],
    [3, 5],
    [30, 1_440],
  ],
  [
    [0, 1],
    [2, 3],
    [5, 1_440],
  ],
];

function coversAll({ currency, usdAbove, isListed, cap }: Template) {
  return cap !== undefined && currency === undefined && usdAbove === undefined && isListed === undefined;
}

export function toPolicy({ rules, rates, uncovered }: SimRules): Policy {
  return parsePolicy({
    ...{ version: '1', platformId: String(PLATFORM_ID), default: uncovered },
    ...(rates && { usd: { maxAge: `${rates.maxAgeMs / 1_000}s`, maxMove: `${rates.maxMovePercent}%` } }),
    groups: { finance: [...APPROVERS] },
    rules: rules.map(toFile),
  });
}

function toFile({ name, currency, usdAbove, isListed, cap, open, over }: SimRule): object {
  const isCool = typeof over === 'object' && 'coolMs' in over;
  const when = {
    ...(currency && { paymentId: [String(currency)] }),
    ...(usdAbove !== undefined && { usdAbove }),
    ...(isListed && { addressIn: LIST }),
    ...(isCool && { address: 'new' }),
  };
  return {
    ...{ name, when },
    ...(cap && { cap: toCap(cap) }),
    ...(open && { window: `${open.map((span) => `Mon-Sun ${span.map(toTime).join('-')}`).join(', ')} UTC` }),
    over: typeof over === 'string' ? over : isCool ? { wait: `${over.coolMs / 1_000}s` } : toApprove(over),
  };
}

function toApprove(over: object): object {
  return { approve: { by: 'finance', quorum: String('quorum' in over ? over.quorum : '') } };
}

function toCap({ unit, limit, withinMs, per }: NonNullable<SimRule['cap']>): object {
  return { [unit]: limit, ...(withinMs && { within: `${withinMs / 1_000}s` }), ...(per && { per }) };
}

function toTime(minute: number) {
  return [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':');
}

type Told = Readonly<{ at: number; processAt: number; rates: ReadonlyMap<number, bigint> }>;

export type KnownRate = bigint | undefined;

/** The gateway's rates in dollars, which move, jump and are missing for a while, and what each process was told of them. */
export function openRates(world: World, random: Random, rules: RateRules | undefined, faultsForMs: number) {
  const toldTo = new Map<string, Told[]>();
  const ever = new Map([
    [7, ['1']],
    [8, ['20']],
  ]);
  const currentOf = (currency: number) => ever.get(currency)?.at(-1) ?? '0';
  let missing: number | undefined;

  const move = () => {
    const currency = random.pick([7, 8]);
    if (random.chance(0.3)) missing = currency;
    const moved = Math.round(Number(currentOf(currency)) * 100 * random.pick([0.3, 0.9, 1.1, 1.25, 3]));
    const cents = Math.max(10, moved);
    const rate = `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
    ever.get(currency)?.push(rate);
    world.note(() => `gateway: currency ${currency} is worth ${rate} now${missing ? ', one is missing' : ''}`);
  };

  const rateAt = (told: readonly Told[], currency: number, processAt: number): KnownRate => {
    if (rules === undefined) return undefined;
    const { maxAgeMs, maxMovePercent } = rules;
    const named = told.flatMap(({ rates, processAt: at }) => {
      const rate = rates.get(currency);
      return rate === undefined ? [] : [{ rate, at }];
    });
    const last = named.at(-1);
    if (last === undefined || processAt - last.at > maxAgeMs) return undefined;
    const hasJumped = named.some(({ rate, at }, index) => {
      const before = named[index - 1]?.rate ?? rate;
      const difference = rate > before ? rate - before : before - rate;
      return difference * 100n > before * BigInt(maxMovePercent) && processAt - at < maxAgeMs;
    });
    return hasJumped ? undefined : last.rate;
  };

  if (rules !== undefined) {
    for (let number = random.whole(0, 4); number > 0; number -= 1) world.after(random.between(0, faultsForMs), move);
    world.after(faultsForMs, () => {
      missing = undefined;
    });
  }

  return {
    tell(process: WorldProcess) {
      const named = [...ever.keys()].filter((currency) => currency !== missing);
      const rates = new Map(named.map((currency) => [currency, toFixed(currentOf(currency))]));
      const told = { at: world.now, processAt: process.now(), rates };
      toldTo.set(process.name, [...(toldTo.get(process.name) ?? []), told]);
      return named.map((id) => ({ id, name: `currency-${id}`, rate_usd: currentOf(id) }));
    },

    around(process: WorldProcess, currency: number, forMs: number) {
      const told = toldTo.get(process.name) ?? [];
      const { now } = world;
      const since = now - forMs;
      const moments = [since, now, ...told.flatMap(({ at }) => (at > since && at <= now ? [at] : []))];
      const toldUntil = (at: number) => told.filter((each) => each.at <= at);
      const processNow = process.now();
      return moments.map((at) => rateAt(toldUntil(at), currency, processNow - (now - at)));
    },

    lowest: (currency: number) => lowestOf((ever.get(currency) ?? []).map(toFixed)) ?? 0n,
    current: (currency: number) => toFixed(currentOf(currency)),
  };
}

export function lowestOf([first, ...rest]: readonly bigint[]): KnownRate {
  return rest.reduce((least, rate) => (rate < (least ?? rate) ? rate : least), first);
}

export function minuteOf(trueNow: number) {
  return Math.floor(((WALL_START + trueNow) % 86_400_000) / 60_000);
}

const PLACES = 18;

export function toFixed(decimal: string): bigint {
  const [whole = '0', places = ''] = decimal.split('.');
  return BigInt(whole) * 10n ** BigInt(PLACES) + BigInt(places.padEnd(PLACES, '0'));
}

export function timesFixed(one: bigint, other: bigint): bigint {
  return (one * other) / 10n ** BigInt(PLACES);
}
