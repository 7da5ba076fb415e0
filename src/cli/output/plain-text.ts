/** What a terminal acts on instead of showing it, or shows at another place. */
const UNSHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;

/**
 * A text that others wrote, for a terminal. Anybody who writes to Redis could otherwise put in what rewrites the verified
 * line above it: characters that are not shown stand there as `\u{1b}`.
 */
export function toPlainText(text: string): string {
  return text.replace(UNSHOWN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}
