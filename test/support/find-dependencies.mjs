import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** What reads Lua scripts, and where from. Jest knows imports only. */
const READS_SCRIPTS = { 'ledger/ledger-connection.ts': 'lua', 'queues/job-records.ts': '.' };

/** Adds the scripts that a file reads: when one changes, Jest finds the tests that it concerns. */
export function extract(code, path, findImports) {
  const imports = findImports(code);
  const [, folder] = Object.entries(READS_SCRIPTS).find(([name]) => path.endsWith(`/src/${name}`)) ?? [];
  if (folder !== undefined) {
    const names = readdirSync(join(dirname(path), folder), { recursive: true });
    for (const name of names) if (name.endsWith('.lua')) imports.add(`./${join(folder, name)}`);
  }
  return imports;
}
