import type { Random } from '../../../doubles/random.js';
import { WALL_START, type World, type WorldProcess } from '../../../world/world.js';
import type { RateRules } from './rules.js';

interface Told {
  readonly at: number;
  readonly processAt: number;
  readonly rates: ReadonlyMap<number, bigint>;
}

export type KnownRate = bigint | undefined;

/** The gateway's rates in dollars, which move, jump and are missing for a while, and what each process was told of them. */
export class SimRates {
  readonly #world: World;
  readonly #rules: RateRules | undefined;
  readonly #told = new Map<string, Told[]>();
  readonly #rates = new Map<number, string>([
    [7, '1'],
    [8, '20'],
  ]);
  readonly #ever = new Map<number, bigint[]>([
    [7, [toFixed('1')]],
    [8, [toFixed('20')]],
  ]);
  #missing: number | undefined;

  constructor(world: World, random: Random, rules: RateRules | undefined, faultsForMs: number) {
    this.#world = world;
    this.#rules = rules;
    if (rules === undefined) return;
    for (let number = random.whole(0, 4); number > 0; number -= 1) {
      world.after(random.between(0, faultsForMs), () => {
        this.#move(random);
      });
    }
    world.after(faultsForMs, () => {
      this.#missing = undefined;
    });
  }

  tell(process: WorldProcess): { id: number; name: string; rate_usd: string }[] {
    const rates = [...this.#rates].filter(([currency]) => currency !== this.#missing);
    const told = { at: this.#world.now, processAt: process.now() };
    const known = new Map(rates.map(([currency, rate]) => [currency, toFixed(rate)]));
    this.#told.set(process.name, [...(this.#told.get(process.name) ?? []), { ...told, rates: known }]);
    return rates.map(([id, rate]) => ({ id, name: `currency-${id}`, rate_usd: rate }));
  }

  around(process: WorldProcess, currency: number, forMs: number): KnownRate[] {
    const told = this.#told.get(process.name) ?? [];
    const { now } = this.#world;
    const since = now - forMs;
    const moments = [since, now, ...told.flatMap(({ at }) => (at > since && at <= now ? [at] : []))];
    const processNow = process.now();
    return moments.map((at) =>
      this.#rateAt(
        told.filter((each) => each.at <= at),
        currency,
        processNow - (now - at),
      ),
    );
  }

  lowest(currency: number): bigint {
    const [first = 0n, ...rest] = this.#ever.get(currency) ?? [];
    return rest.reduce((least, rate) => (rate < least ? rate : least), first);
  }

  current(currency: number): bigint {
    return toFixed(this.#rates.get(currency) ?? '0');
  }

  #rateAt(told: readonly Told[], currency: number, processAt: number): KnownRate {
    if (this.#rules === undefined) return undefined;
    const { maxAgeMs, maxMovePercent } = this.#rules;
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
  }

  #move(random: Random): void {
    const currency = random.pick([7, 8]);
    if (random.chance(0.3)) this.#missing = currency;
    const cents = Math.max(
      10,
      Math.round(Number(this.#rates.get(currency)) * 100 * random.pick([0.3, 0.9, 1.1, 1.25, 3])),
    );
    const rate = `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
    this.#rates.set(currency, rate);
    this.#ever.set(currency, [...(this.#ever.get(currency) ?? []), toFixed(rate)]);
    this.#world.note(
      () => `gateway: currency ${currency} is worth ${rate} now${this.#missing ? ', one is missing' : ''}`,
    );
  }
}

export function minuteOf(trueNow: number): number {
  return Math.floor(((WALL_START + trueNow) % 86_400_000) / 60_000);
}

const PLACES = 18;

/** A decimal string in units of 10⁻¹⁸: the judge's own arithmetic. */
export function toFixed(decimal: string): bigint {
  const [whole = '0', places = ''] = decimal.split('.');
  return BigInt(whole) * 10n ** BigInt(PLACES) + BigInt(places.padEnd(PLACES, '0'));
}

export function timesFixed(one: bigint, other: bigint): bigint {
  return (one * other) / 10n ** BigInt(PLACES);
}
