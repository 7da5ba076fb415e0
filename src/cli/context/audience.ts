import { systemClock } from '../../clock.js';
import { readConfig, type Environment } from '../../config.js';
import { openAudience, type Audience } from '../../control/keys/audience.js';
import { audienceOf } from '../../account-settings.js';

/**
 * For which environment the environment's account signs.
 * @throws InvalidConfigError when nothing says so, or a setting is not usable
 */
export function readAudience(environment: Environment): string {
  const { GATEWAY_PLATFORM_ID: platformId, PAYOUT_AUDIENCE: audience } = readConfig(
    ['GATEWAY_PLATFORM_ID', 'PAYOUT_AUDIENCE'],
    environment,
  );
  const hasUrl = audience === undefined && Boolean(environment['GATEWAY_BASE_URL']);
  const baseUrl = hasUrl ? readConfig(['GATEWAY_BASE_URL'], environment).GATEWAY_BASE_URL : undefined;
  return audienceOf({ platformId, audience, baseUrl });
}

/** For which environment signatures count. @throws InvalidConfigError as {@link readAudience} */
export function readOpenAudience(environment: Environment): Audience {
  const { PAYOUT_ACCEPT_UNBOUND_UNTIL: until } = readConfig(['PAYOUT_ACCEPT_UNBOUND_UNTIL'], environment);
  return openAudience(readAudience(environment), until, systemClock);
}
