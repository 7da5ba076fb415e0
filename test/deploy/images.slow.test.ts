import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { SECRET_KEY, untilSettled, worldOfTest } from '../worker/support/payout-world.js';
import { startProgram } from '../support/cli.js';
import { missingTools, openImageBuilder } from './support/image-builder.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Skips loudly without the tools, which `npm run images` installs. Only root can build without a daemon here. */
function ifBuildable() {
  if (process.getuid?.() === 0 && missingTools.length === 0) return it;
  const missing = missingTools.join(', ') || 'root';
  process.stderr.write(`SKIPPED: the image of the Dockerfile, without ${missing}: \`npm run images\` as root\n`);
  return it.skip;
}

ifBuildable()(
  'the image of the Dockerfile pays, is healthy, and has no problem for doctor',
  async () => {
    const [, base = ''] = /^FROM (\S+)/m.exec(readFileSync(`${ROOT}Dockerfile`, 'utf8')) ?? [];
    const builder = await openImageBuilder();
    const { container, config } = builder.build(`${ROOT}Dockerfile`, base, ROOT);
    const world = await worldOfTest();
    const settings = {
      REDIS_URL: world.redisUrl,
      GATEWAY_PLATFORM_ID: String(world.platformId),
      GATEWAY_BASE_URL: world.sandbox.url,
      GATEWAY_SECRET_KEY: SECRET_KEY,
      HEALTH_PORT: String(await findFreePort()),
      TAKEOVER_QUARANTINE_MS: '1000',
    };
    const inside = (...command: readonly string[]) => {
      const variables = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
      return startProgram('buildah', ['run', ...variables, container, '--', ...command], { env: builder.environment });
    };
    const [, ...health] = config.Healthcheck.Test;
    expect((await inside(...health).result).code).toBe(1);
    expect((await inside('sh', '-c', 'test "$(id -u)" = 1000').result).code).toBe(0);

    const worker = inside(...config.Entrypoint, ...config.Cmd);
    await world.enqueue(1);
    await untilSettled(world, 1);
    expect((await inside(...health).result).code).toBe(0);
    const { code, stdout } = await inside('payouts', 'doctor').result;
    expect({ code, problems: stdout.split('\n').filter((line) => line.startsWith('✗')) }).toEqual({
      code: 0,
      problems: [],
    });
    worker.kill('SIGTERM');
    await worker.result;
    // Its journal is in the volume.
    expect((await inside('sh', '-c', 'test -n "$(ls /data/journal)"').result).code).toBe(0);
  },
  900_000,
);
