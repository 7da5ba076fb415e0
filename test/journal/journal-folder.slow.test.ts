import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { findBuiltProgram } from '../support/built-program.js';
import { startProgram } from '../support/cli.js';
import { afterTest } from '../worker/support/close-after-test.js';
import { SECRET_KEY, worldOfTest } from '../worker/support/payout-world.js';

/** A worker on a disk on which its journal's folder cannot be made: real mounts, in a namespace of their own. */

const mounted = (how: string) => [
  'unshare',
  '-rm',
  'sh',
  '-c',
  `mount -t tmpfs -o ${how} none "$DISK"; exec "$@"`,
  'sh',
];
const AS_NOBODY =
  'chmod 555 "$DISK"; [ "$(id -u)" != 0 ] || set -- setpriv --reuid=65534 --clear-groups "$@"; exec "$@"';

it.each<[string, string[], RegExp]>([
  ['full', mounted('nr_inodes=1'), /ENOSPC: no space left on device, mkdir .* Free space on this disk\./],
  [
    'read-only',
    mounted('ro'),
    /EROFS: read-only file system, mkdir .* Its file system is read-only: mount it for writing\./,
  ],
  [
    'of another user',
    ['sh', '-c', AS_NOBODY, 'sh'],
    /EACCES: permission denied, (?:mkdir|stat) .* Let the user of the worker write there\./,
  ],
])('payouts worker says that the disk is %s, and what to do', async (_, [program = '', ...how], message) => {
  const world = await worldOfTest();
  const disk = join(world.dir, 'disk');
  await mkdir(disk);
  const args = [...how, process.execPath, findBuiltProgram(), 'worker'];
  const { result, kill, waitForOutput } = startProgram(program, args, {
    cwd: '/',
    env: {
      ...{ ...world.env, DISK: disk, SEND_JOURNAL_DIR: join(disk, 'journal'), HEALTH_PORT: '0', NODE_NO_WARNINGS: '1' },
      ...{ GATEWAY_BASE_URL: world.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY },
    },
  });
  afterTest(async () => {
    kill('SIGKILL');
    await result;
  });
  const [said] = await waitForOutput(/^.*nothing is sent without the send journal.*$/m);
  expect((JSON.parse(said) as { readonly error: string }).error).toMatch(
    new RegExp(`^SEND_JOURNAL_DIR \\(journalDir\\): the folder "${disk}/journal" cannot be used: ${message.source}$`),
  );
  kill('SIGTERM');
  expect(await result).toMatchObject({ code: 0 });
});
