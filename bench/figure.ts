/** A figure with its target, an upper or a lower bound. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly reached: boolean;
}

export function figure(
  name: string,
  value: number,
  target: { readonly atMost: number } | { readonly atLeast: number },
): Figure {
  const reached = 'atMost' in target ? value <= target.atMost : value >= target.atLeast;
  return { name, value, ...target, reached };
}

/** The names of figures that nothing was measured for. Only where none is allowed, such as of mistakes, 0 is a measurement. */
export function findEmpty(figures: readonly Figure[]): string[] {
  const isEmpty = ({ value, atMost }: Figure): boolean => !Number.isFinite(value) || (value === 0 && atMost !== 0);
  return figures.filter(isEmpty).map(({ name }) => name);
}

/** A short run is too short for its targets, so it neither reaches nor misses one. */
export function judge({ reached }: Figure, isQuick: boolean): string {
  if (isQuick) return 'not judged in the short form';
  return reached ? 'reached' : 'MISSED ';
}
