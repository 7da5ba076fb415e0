const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A duration of a policy in the largest unit of which it is more than one, exact: `24 h`, `7 d`, `90 min`. @param ms - whole seconds */
export function formatSpan(ms: number): string {
  const [name, size] = UNITS.find(([, each]) => ms > each && ms % each === 0) ?? UNITS[3];
  return `${ms / size} ${name}`;
}
