import { basename } from 'node:path';
import { every, type Clock } from '../../clock.js';
import type { Logger } from '../../logger.js';

export interface TellPolicyOptions {
  readonly policy: {
    readonly file: string;
    /** The hashes of what was loaded since the last call. */
    takeLoaded(): readonly string[];
  };
  /** Host and process id. */
  readonly name: string;
  /** Tells those who read the account's events. */
  readonly tell: (hash: string, about: string) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const CHECK_EVERY_MS = 1_000;

/** Tells each policy that this process has loaded, once, until the signal is aborted. An unavailable Redis is waited for. */
export async function tellPolicy(options: TellPolicyOptions, end: AbortSignal): Promise<void> {
  const { policy, name, tell, clock, logger } = options;
  const about = `${basename(policy.file)}, by ${name}`;
  const untold: string[] = [];
  const tellLoaded = async (): Promise<void> => {
    untold.push(...policy.takeLoaded());
    for (let [hash] = untold; hash !== undefined; [hash] = untold) {
      await tell(hash, about);
      untold.shift();
    }
  };
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot tell which policy was loaded yet');
  };
  await every(CHECK_EVERY_MS, tellLoaded, { clock, signal: end, onError });
}
