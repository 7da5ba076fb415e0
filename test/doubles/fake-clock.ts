import { spawnSync } from 'node:child_process';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The wall clock of a process under libfaketime, which can be set while it runs. Its monotonic clock runs on as it does. */
export interface FakeClock {
  readonly environment: Readonly<Record<string, string>>;
  readonly offsetMs: number;
  set(offsetMs: number): Promise<void>;
}

export async function createFakeClock(dir: string, file: string): Promise<FakeClock> {
  const path = join(dir, file);
  let offsetMs = 0;
  const write = async () => {
    // In one step: a process that read half a number would be in another year.
    await writeFile(`${path}.new`, `${offsetMs < 0 ? '' : '+'}${offsetMs / 1_000}\n`);
    await rename(`${path}.new`, path);
  };
  await write();
  return {
    environment: {
      LD_PRELOAD: findLibraries(),
      FAKETIME_TIMESTAMP_FILE: path,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    get offsetMs() {
      return offsetMs;
    },
    async set(to) {
      offsetMs = to;
      await write();
    },
  };
}

const TRIES = 20;

/**
 * What has to be preloaded. Where libfaketime is, its own command knows. A redis-server that is linked against jemalloc
 * asks for the time before its memory is ready, on which libfaketime, which needs memory for that, waits forever: with
 * glibc's own malloc in front of jemalloc's there is memory from the start.
 *
 * The command shares memory under a name with its process id, and refuses where an earlier one of the same id was killed and
 * left it behind. Another try has another id.
 */
function findLibraries() {
  for (let tries = 1; ; tries += 1) {
    const { stdout, stderr, status, error } = spawnSync('faketime', ['-m', '-f', '+0', 'printenv', 'LD_PRELOAD'], {
      encoding: 'utf8',
    });
    if (error !== undefined)
      throw new Error('faketime is not installed: run `node scripts/setup.mjs --with-faketime`', { cause: error });
    if (status === 0) return `libc_malloc_debug.so.0 ${stdout.trim()}`;
    if (tries === TRIES) throw new Error(`faketime ended with ${status ?? 'a signal'}: ${stderr.trim()}`);
  }
}
