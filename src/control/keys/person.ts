import { personField } from '../../base/fields.js';

/**
 * People are ids, because a quorum counts them: two look-alike texts must not be two people. Display names are
 * separate, in `people` of the keyring, and decide nothing.
 */

const OTHER_THAN_ID = /[^a-z0-9._-]+/g;
const NO_ASCII = /[^\u0020-\u007e]/u;

/**
 * The id for a text: lower case, with one `-` for each run of spaces and other characters.
 * @returns undefined if a character is not ASCII, or no letter or digit is left
 */
function foldPerson(text: string): string | undefined {
  // First, because the lower case of U+212A is a plain k.
  if (NO_ASCII.test(text)) return undefined;
  const id = text.toLowerCase().replaceAll(OTHER_THAN_ID, '-');
  return /[a-z0-9]/.test(id) ? id : undefined;
}

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

interface LookAlike {
  readonly id: string;
  readonly other: string;
}

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

const UNSEEN = /[\p{M}\p{Default_Ignorable_Code_Point}]/gu;

/** Whether a text looks like this person's id. If applications may name others, only this separates them. */
export function namesPerson(text: string, person: string): boolean {
  const id = foldPerson(text.normalize('NFKD').replaceAll(UNSEEN, ''));
  return id !== undefined && shapeOf(id) === shapeOf(person);
}

/**
 * The requester, if the keyring has no such person. Then it is unknown whose approval would be of their own payout.
 * @returns the name for messages, without misleading characters
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
