const PLACES = 18;

/** A decimal string in units of 10⁻¹⁸: the judge's own arithmetic. */
export function toFixed(decimal: string): bigint {
  const [whole = '0', places = ''] = decimal.split('.');
  return BigInt(whole) * 10n ** BigInt(PLACES) + BigInt(places.padEnd(PLACES, '0'));
}

export function timesFixed(one: bigint, other: bigint): bigint {
  return (one * other) / 10n ** BigInt(PLACES);
}
