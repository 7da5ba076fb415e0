import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { findBuiltProgram } from '../support/built-program.js';
import { makeJournalFolder, type JournalFolder } from './support/journal-folder.js';

/** Processes of the built program, which no mutant reaches. */

const FORMER_JOURNAL = fileURLToPath(new URL('fixtures/format-1', import.meta.url));
const OPEN_JOURNAL = fileURLToPath(new URL('support/open-journal.mjs', import.meta.url));

let folder: JournalFolder;
let children: ChildProcess[];
beforeEach(async () => {
  folder = await makeJournalFolder();
  children = [];
});
afterEach(async () => {
  for (const child of children) if (child.exitCode === null) child.kill('SIGKILL');
  await folder.close();
});

/** Starts a process that opens the journal when it is told to. */
async function startOpener(): Promise<{ readonly open: () => Promise<string> }> {
  findBuiltProgram();
  const child = spawn(process.execPath, [OPEN_JOURNAL, folder.dir], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(child, 'close');
  await once(child.stdout, 'data');
  return {
    async open() {
      child.stdin.write('now\n');
      await ended;
      return output.split('\n')[1] ?? '';
    },
  };
}

it('a journal of format 1 gets the same id from several processes that open it at once', async () => {
  await cp(FORMER_JOURNAL, folder.dir, { recursive: true });
  const sendsIn = async (): Promise<string[]> => {
    const sends: string[] = [];
    for await (const item of (await folder.open()).items()) if ('payoutId' in item) sends.push(item.payoutId);
    return sends;
  };
  const openers = await Promise.all(Array.from({ length: 4 }, startOpener));
  const ids = await Promise.all(openers.map(async ({ open }) => open()));
  const { journalId } = await folder.open();
  expect(ids).toEqual(Array(4).fill(journalId));
  expect(await sendsIn()).toEqual(['P-1', 'P-2', 'P-3', 'P-4', 'P-2', 'P-5']);
  expect((await readdir(folder.dir)).sort()).toEqual(['1.journal', '1.journal.1']);
});
