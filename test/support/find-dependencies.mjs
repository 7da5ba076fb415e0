import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** What reads Lua scripts, and where from. Jest knows imports only. */
const READS_SCRIPTS = { 'ledger/ledger-connection.ts': 'lua', 'queues/job-records.ts': '.' };

/** Commands that start a worker: a test of all commands imports them. When it changes, those of others need not run. */
const STARTS_WORKER = ['./worker/worker-command.js', './demo/demo-command.js'];

/** So that Jest finds the tests that a change concerns. */
export function extract(code, path, findImports) {
  const imports = findImports(code);
  const [, folder] = Object.entries(READS_SCRIPTS).find(([name]) => path.endsWith(`/src/${name}`)) ?? [];
  if (folder !== undefined) {
    const names = readdirSync(join(dirname(path), folder), { recursive: true });
    for (const name of names) if (name.endsWith('.lua')) imports.add(`./${join(folder, name)}`);
  }
  if (path.endsWith('/src/cli/command-groups.ts')) for (const name of STARTS_WORKER) imports.delete(name);
  return imports;
}
