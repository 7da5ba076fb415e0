/** What a terminal acts on instead of showing it, or shows at another place. */
const UNSHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
const UNSHOWN_IN_LINES = new RegExp(`(?!\\n)${UNSHOWN.source}`, 'gu');

/** An escape of JSON whose character may be one of them; what else follows a backslash stays with it. */
const JSON_ESCAPE = /\\(?:([bfr]|u[0-9a-f]{4})|.)/gi;

/**
 * A text that others wrote, for a terminal, on one line. Anybody who writes to Redis could otherwise put in what rewrites the
 * verified line above it: characters that are not shown stand there as `\u{1b}`.
 */
export function toPlainText(text: string): string {
  return text.replace(UNSHOWN, toEscape);
}

/** The same, but its line breaks stay. */
export function toPlainLines(text: string): string {
  return text.replace(UNSHOWN_IN_LINES, toEscape);
}

/** A value as one line of JSON that is the same value to every reader, and moves nothing on a terminal. */
export function toJsonLine(value: unknown): string {
  const units = (character: string): string => {
    const codes = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
    return codes.map((code) => `\\u${code.toString(16).padStart(4, '0')}`).join('');
  };
  return `${JSON.stringify(value).replace(UNSHOWN, units)}\n`;
}

/**
 * A line of JSON for people: a viewer such as pino-pretty undoes the escapes of JSON, so a character that is not shown is the
 * text `\u{1b}` in the value itself. Line breaks and tabs, as stack traces have, stay.
 */
export function toPlainLog(line: string): string {
  const plain = line.replace(JSON_ESCAPE, (escape: string, code?: string) => {
    const character = code === undefined ? '' : (JSON.parse(`"${escape}"`) as string);
    return character === toPlainText(character) ? escape : `\\${toEscape(character)}`;
  });
  return plain.replace(UNSHOWN_IN_LINES, (character) => `\\${toEscape(character)}`);
}

function toEscape(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
