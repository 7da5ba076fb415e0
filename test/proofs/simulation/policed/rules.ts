import { parsePolicy, type Policy } from '../../../../src/control/policy/policy.js';
import type { Random } from '../../../doubles/random.js';
import { walletOf } from '../../../world/worker.js';
import { PLATFORM_ID } from '../signed/keys.js';

export type OpenMinutes = readonly (readonly [from: number, to: number])[];

/** A rule as the judge understands it: the policy file is written from it, and never read back. */
export interface SimRule {
  readonly name: string;
  readonly currency?: 7 | 8;
  readonly usdAbove?: string;
  readonly isListed?: true;
  readonly cap?: {
    readonly unit: 'usd' | 'amount' | 'count';
    readonly limit: string;
    readonly withinMs?: number;
    readonly per?: 'address';
  };
  readonly open?: OpenMinutes;
  /** Refused, held until there is room or it is time, held until so long after its address was seen, or for approvals. */
  readonly over: 'refuse' | 'wait' | { readonly coolMs: number } | { readonly quorum: 1 | 2 };
}

export interface RateRules {
  readonly maxAgeMs: number;
  readonly maxMovePercent: number;
}

export interface SimRules {
  readonly rules: readonly SimRule[];
  readonly rates: RateRules | undefined;
  readonly uncovered: 'hold' | 'send';
}

export const LIST = 'list.txt';
export const LISTED = walletOf('c');

/** The people of the group that approves; one of them is who signs for the application. */
export const APPROVERS = ['Ann', 'Bob', 'Cy', 'Dee', 'Shop'] as const;

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

/** Runs begin at midnight; after half an hour it is open all day, so that they drain. */
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

function coversAll({ currency, usdAbove, isListed, cap }: Template): boolean {
  return cap !== undefined && currency === undefined && usdAbove === undefined && isListed === undefined;
}

/** The policy, read by the code that is tested, from what stands in its file. */
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

function toTime(minute: number): string {
  return [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':');
}
