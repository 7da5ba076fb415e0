import { InvalidInputError } from './errors.js';

/**
 * Refuses a key twice in an object: `JSON.parse` would take the last one.
 * @throws InvalidInputError naming the field and the key
 */
export function parseJson(text: string, field: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InvalidInputError([{ field, message: `is not JSON${describeFault(error as Error)}` }]);
  }
  const objects: Set<string>[] = [];
  for (const [token, name] of text.matchAll(/("[^"\\]*(?:\\.[^"\\]*)*")\s*:|"[^"\\]*(?:\\.[^"\\]*)*"|[{}]/g)) {
    if (token === '{') objects.push(new Set());
    else if (token === '}') objects.pop();
    if (name === undefined) continue;
    // `"\u0061"` is `"a"`.
    const key = JSON.parse(name) as string;
    if (objects.at(-1)?.has(key) === true) {
      throw new InvalidInputError([{ field, message: `has ${JSON.stringify(key)} twice: give it once` }]);
    }
    objects.at(-1)?.add(key);
  }
  return value;
}

/** Node quotes the text around some faults, and an accounts file has secrets. */
function describeFault({ message }: Error): string {
  return message.includes('"') ? '' : `: ${message}`;
}

/** Of stored text, which anyone may have altered. @returns undefined if it is not JSON */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** As {@link readJson}. @returns an empty object if it is not that of one */
export function readJsonObject(text: string): object {
  const value = readJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
