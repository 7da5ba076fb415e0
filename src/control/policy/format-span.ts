const UNITS = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;
const DAY_MS = 86_400_000;

/** An exact duration: `7 d`, but `24 h`; `90 min`. @param ms - whole seconds */
export function formatSpan(ms: number): string {
  if (ms > DAY_MS && ms % DAY_MS === 0) return `${ms / DAY_MS} d`;
  const [name, size] = UNITS.find(([, each]) => ms % each === 0) ?? UNITS[2];
  return `${ms / size} ${name}`;
}
