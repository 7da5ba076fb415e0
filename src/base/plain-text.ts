/** Characters that a terminal obeys instead of showing, or shows at another place. */
const UNSHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
const UNSHOWN_IN_LINES = new RegExp(`(?!\\n)${UNSHOWN.source}`, 'gu');

/** A JSON escape that may stand for one of them. Other escapes are matched whole. */
const JSON_ESCAPE = /\\(?:([bfr]|u[0-9a-f]{4})|.)/gi;

/**
 * Untrusted text for a terminal, on one line. Text from Redis could otherwise rewrite the verified line above it.
 * Invisible characters become `\u{1b}`.
 */
export function toPlainText(text: string): string {
  return text.replace(UNSHOWN, toEscape);
}

export function toPlainLines(text: string): string {
  return text.replace(UNSHOWN_IN_LINES, toEscape);
}

/** A value as one line of JSON, equal for every reader and harmless to a terminal. */
export function toJsonLine(value: unknown): string {
  return `${toPlainJson(value)}\n`;
}

/** As {@link toJsonLine}, without the line break. */
export function toPlainJson(value: unknown): string {
  const units = (character: string): string => {
    const codes = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
    return codes.map((code) => `\\u${code.toString(16).padStart(4, '0')}`).join('');
  };
  return JSON.stringify(value).replace(UNSHOWN, units);
}

/**
 * A JSON log line for people. A viewer such as pino-pretty undoes JSON escapes, so an invisible character becomes the
 * text `\u{1b}` in the value itself. Line breaks and tabs, as in stack traces, stay.
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
