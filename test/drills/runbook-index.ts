import { readFileSync } from 'node:fs';

const RUNBOOKS = new URL('../../docs/runbooks/', import.meta.url);

const read = (name: string) => readFileSync(new URL(`${name}.md`, RUNBOOKS), 'utf8');

const LINES = read('README').split('\n');

/** The index's first line with these words in code: its first command, and the page. */
export function findInIndex(words: string) {
  const line = LINES.find((each) => each.includes(`\`${words}\``));
  const [, command, runbook] = /\*\*`([^`]+)`\*\*.*?\[[^\]]+\]\(([\w-]+)\.md\)/.exec(line ?? '') ?? [];
  if (command === undefined || runbook === undefined) throw new Error(`the index of the runbooks has no "${words}"`);
  return { command, runbook };
}

export function titleOf(runbook: string) {
  return /^# (.*)$/m.exec(read(runbook))?.[1]?.replaceAll('`', '') ?? '';
}
