/** The same text with other content between two marks, which stay. @throws Error when a mark is missing */
export function replaceBetween(text: string, begin: string, end: string, content: string): string {
  const [head, rest] = split(text, begin);
  const [, tail] = split(rest, end);
  return `${head}${begin}\n${content}\n\n${end}${tail}`;
}

function split(text: string, mark: string): [before: string, after: string] {
  const at = text.indexOf(mark);
  if (at < 0) throw new Error(`the mark ${mark.trim()} is missing`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}
