/** The arithmetic of the curve of RFC 8032, slow and plain: what the tests know of it does not come from the code under test. */

export const P = 2n ** 255n - 19n;
/** The order of the base point. */
export const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const D = mod(-121665n * power(121666n, P - 2n));

export type Point = readonly [x: bigint, y: bigint];

export function mod(value: bigint): bigint {
  return ((value % P) + P) % P;
}

export function power(base: bigint, exponent: bigint): bigint {
  let [result, factor] = [1n, mod(base)];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = mod(result * factor);
    factor = mod(factor * factor);
  }
  return result;
}

function add([x1, y1]: Point, [x2, y2]: Point): Point {
  const k = mod(D * x1 * x2 * y1 * y2);
  return [mod((x1 * y2 + y1 * x2) * power(1n + k, P - 2n)), mod((y1 * y2 + x1 * x2) * power(1n - k, P - 2n))];
}

export function multiply(point: Point, factor: bigint): Point {
  let [result, doubled]: [Point, Point] = [[0n, 1n], point];
  for (let rest = factor; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = add(result, doubled);
    doubled = add(doubled, doubled);
  }
  return result;
}

/** The point of a y, where there is one. */
export function pointOf(y: bigint): Point | undefined {
  const square = mod((y * y - 1n) * power(D * y * y + 1n, P - 2n));
  const root = power(square, (P + 3n) / 8n);
  const x = [root, mod(root * power(2n, (P - 1n) / 4n))].find((candidate) => mod(candidate * candidate) === square);
  return x === undefined ? undefined : [x, y];
}

/** The 32 bytes of an integer, least byte first; the sign is the highest bit. */
export function encode(y: bigint, sign: 0n | 1n): Buffer {
  const bytes = Buffer.from((y | (sign << 255n)).toString(16).padStart(64, '0'), 'hex');
  return bytes.reverse();
}

/** The eight points whose order divides 8. */
export function findSmallOrderPoints(): Point[] {
  const found = new Map<string, Point>();
  for (let y = 2n; found.size < 8; y += 1n) {
    const point = pointOf(y);
    if (point === undefined) continue;
    const small = multiply(point, L);
    for (let times = 0n; times < 8n; times += 1n) {
      const one = multiply(small, times);
      found.set(one.join(), one);
    }
  }
  return [...found.values()];
}
