import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { findFreePort } from 'payout-queue/local-redis';
import { makeStoreDir, type Store } from './store.js';
import { startProgram, type Program } from './program.js';

/** Debian keeps the server's programs out of the PATH. */
const DEBIAN = '/usr/lib/postgresql';

/** With PostgreSQL's own settings. */
export async function openPostgresStore(): Promise<Store> {
  const [dir, port, owner] = [await makeStoreDir('postgres'), await findFreePort(), ownerOf()];
  if (owner !== undefined) chownSync(dir, owner.uid, owner.gid);
  execFileSync(findProgram('initdb'), ['-D', dir, '-A', 'trust', '-U', 'postgres'], { ...owner, stdio: 'ignore' });
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${dir}`];
  let server: Program | undefined;
  return {
    url: `postgresql://postgres@127.0.0.1:${port}/merchant`,
    dir,
    async start() {
      const command = [findProgram('postgres'), '-D', dir, '-p', String(port), ...settings];
      server = await startProgram(command, /ready to accept connections/, { ...owner, cwd: dir });
    },
    stop: async () => server?.end('SIGINT'),
  };
}

/** PostgreSQL does not run as root. */
function ownerOf(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

function findProgram(name: string): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, 'bin')) : [];
  const folders = [...versions, ...(process.env['PATH'] ?? '').split(delimiter)];
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${name} is missing: node scripts/setup.mjs --with-postgres`);
  return found;
}
