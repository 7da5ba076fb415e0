import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { startCli } from '../../support/cli.js';

export const SIGNING_SECRET = 'whsec-hunter2-0123456789';

export async function startNotify(
  redisUrl: string,
  platformId: number,
  url: string,
  env: Readonly<Record<string, string>> = {},
) {
  const port = await findFreePort();
  const cli = startCli(['notify'], {
    env: {
      REDIS_URL: redisUrl,
      GATEWAY_PLATFORM_ID: String(platformId),
      NOTIFY_URL: url,
      NOTIFY_SECRET: SIGNING_SECRET,
      NOTIFY_TIMEOUT_MS: '1000',
      NOTIFY_HEALTH_PORT: String(port),
      ...env,
    },
  });
  await cli.waitForOutput(/notifications start/);
  return {
    ...cli,
    async read(path: string) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return { status: response.status, body: await response.text() };
    },
  };
}
