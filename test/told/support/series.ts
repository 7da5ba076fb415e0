/** What a worker's `/metrics` responded. */
export interface Scrape {
  readonly instance: string;
  readonly text: string;
}

/** All workers at one time. */
export interface Snapshot {
  /** Seconds on any clock. */
  readonly at: number;
  /** Seconds since 1970, for gauges that are times. @defaultValue 0 */
  readonly wallAt?: number;
  readonly scrapes: readonly Scrape[];
}

export interface Observation {
  /** Before the fault. */
  readonly before: Snapshot;
  /** Counters continue as fast as they rose from here … */
  readonly since: Snapshot;
  /** … to here, during the fault. */
  readonly now: Snapshot;
}

/** A series as `promtool test rules` takes it, one value a minute. */
export interface InputSeries {
  readonly series: string;
  readonly values: string;
}

/** For this long all was as in the first scrape. */
export const MINUTES_BEFORE = 15;

/** Gauges that are times. Simulated time begins with 1970. */
const TIME = /_timestamp_seconds$/;

/** Gauges that grow by themselves for as long as nothing changes. */
const AGES = [
  'payouts_oldest_age_seconds',
  'payouts_rate_age_seconds',
  'payouts_held_overdue_seconds',
  'payouts_sender_heartbeat_age_seconds',
];

const MINUTE_S = 60;

/**
 * Extrapolates what was scraped: as before for a while, then as during the fault, where counters continue as fast as they
 * rose, and ages grow with the time.
 * @param minutes - for how long the fault lasts
 */
export function extrapolate({ before, since, now }: Observation, minutes: number): InputSeries[] {
  const [old, first, last] = [before, since, now].map(readSamples) as [Samples, Samples, Samples];
  const betweenS = now.at - since.at;
  const agoS = (now.wallAt ?? 0) - MINUTES_BEFORE * MINUTE_S;
  const names = new Set([...old.keys(), ...last.keys()]);
  return [...names].map((series) => {
    const beforeIt = shift(old.get(series), agoS);
    const start = beforeIt === undefined ? `_x${MINUTES_BEFORE}` : `${beforeIt.value}+0x${MINUTES_BEFORE - 1}`;
    const sample = shift(last.get(series), agoS);
    if (sample === undefined) return { series, values: `${start} stale` };
    const change = sample.value - (first.get(series)?.value ?? sample.value);
    return { series, values: `${start} ${sample.value}+${risePerMinute(sample, change, betweenS)}x${minutes}` };
  });
}

/** A time as it is on the simulated clock. */
export function shift(sample: Sample | undefined, agoS: number): Sample | undefined {
  return sample && TIME.test(sample.name) ? { ...sample, value: sample.value - agoS } : sample;
}

function risePerMinute({ name, type }: Sample, change: number, betweenS: number): number {
  if (change <= 0) return 0;
  if (AGES.includes(name)) return MINUTE_S;
  return type === 'gauge' ? 0 : (change / betweenS) * MINUTE_S;
}

interface Sample {
  readonly name: string;
  readonly type: string;
  readonly value: number;
}

type Samples = ReadonlyMap<string, Sample>;

export function readSamples({ scrapes }: Snapshot): Samples {
  return new Map(scrapes.flatMap(({ instance, text }) => [...readText(instance, text)]));
}

/** Prometheus adds to each series what it was scraped from. */
function* readText(instance: string, text: string): Generator<[string, Sample]> {
  let type = '';
  for (const line of text.split('\n')) {
    const [, declared] = /^# TYPE \S+ (\S+)$/.exec(line) ?? [];
    if (declared !== undefined) type = declared;
    const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const all = [...(labels === '' ? [] : [labels]), `instance="${instance}"`, 'job="payouts"'];
    yield [`${name}{${all.join(',')}}`, { name, type, value: Number(value) }];
  }
}
