import { personField } from '../../fields.js';

/**
 * People are ids, because a quorum counts them: two texts that look alike to a reader must not be two people. Display names
 * stand apart, in `people` of the keyring, and decide nothing.
 */

const OTHER_THAN_ID = /[^a-z0-9._-]+/g;
const NO_ASCII = /[^\u0020-\u007e]/u;

/**
 * The id that a text stands for: in lower case, with one `-` in place of spaces and other characters.
 * @returns undefined where a character is not ASCII, or no letter or digit is left: the text names nobody
 */
export function foldPerson(text: string): string | undefined {
  // First: the lower case of U+212A is a plain k.
  if (NO_ASCII.test(text)) return undefined;
  const id = text.toLowerCase().replaceAll(OTHER_THAN_ID, '-');
  return /[a-z0-9]/.test(id) ? id : undefined;
}

/** A person of a keyring, or of a group of a policy, as an id. */
export const personIdField = personField.transform((text, context): string => {
  const id = foldPerson(text);
  if (id !== undefined) return id;
  const strange = NO_ASCII.exec(text)?.[0];
  const found = strange === undefined ? 'it has no letter or digit' : `${toCodePoint(strange)} is not one of them`;
  const message = `must be an id of a-z 0-9 . _ -, and ${found}. A display name goes under "people" of the keyring`;
  context.issues.push({ code: 'custom', message, input: text });
  return '';
});

function toCodePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Two ids that a reader takes for one: they differ in `.`, `_`, `-`, or in l for 1 and o for 0. */
export interface LookAlike {
  readonly id: string;
  /** The one before it. */
  readonly other: string;
}

/** @param ids - in the order in which they are given */
export function findLookAlikes(ids: Iterable<string>): LookAlike[] {
  const known = new Map<string, string>();
  const found: LookAlike[] = [];
  for (const id of new Set(ids)) {
    const shape = shapeOf(id);
    const other = known.get(shape);
    if (other === undefined) known.set(shape, id);
    else found.push({ id, other });
  }
  return found;
}

function shapeOf(id: string): string {
  return id.replaceAll(/[._-]/g, '').replaceAll('l', '1').replaceAll('o', '0');
}

/** Marks above and below letters, and what shows nothing at all. */
const UNSEEN = /[\p{M}\p{Default_Ignorable_Code_Point}]/gu;

/** Whether a reader takes a text for the person of this id. If applications may name others, nothing else tells them apart. */
export function namesPerson(text: string, person: string): boolean {
  const id = foldPerson(text.normalize('NFKD').replaceAll(UNSEEN, ''));
  return id !== undefined && shapeOf(id) === shapeOf(person);
}

/**
 * Who asked for a payout, where the keyring has no such person: then nobody can say whose approval would be of their own payout.
 * @returns the name for messages, without characters that a terminal could take for others
 */
export function findStranger(
  requestedBy: string | undefined,
  keys: readonly { readonly person: string }[],
): string | undefined {
  if (requestedBy === undefined) return undefined;
  const id = foldPerson(requestedBy);
  if (id !== undefined && keys.some(({ person }) => person === id)) return undefined;
  return JSON.stringify(requestedBy).replaceAll(/[^\u0020-\u007e]/g, toEscape);
}

function toEscape(unit: string): string {
  return String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
