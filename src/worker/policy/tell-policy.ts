import { basename } from 'node:path';
import { isAborted, type Clock } from '../../clock.js';
import type { Logger } from '../../logger.js';

export interface TellPolicyOptions {
  readonly policy: {
    readonly hash: string;
    readonly file: string;
    /** How often the file was read and could be used. */
    readonly readings: number;
  };
  /** Host and process id. */
  readonly name: string;
  /** Tells those who read the account's events. */
  readonly tell: (hash: string, about: string) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The file is read on SIGHUP, which no program sends more often. */
const CHECK_EVERY_MS = 1_000;

/** Tells each policy that this process has loaded, once, until the signal is aborted. An unavailable Redis is waited for. */
export async function tellPolicy(options: TellPolicyOptions, end: AbortSignal): Promise<void> {
  const { policy, name, tell, clock, logger } = options;
  let told = 0;
  while (!isAborted(end)) {
    const { readings, hash, file } = policy;
    try {
      if (readings !== told) await tell(hash, `${basename(file)}, by ${name}`);
      told = readings;
    } catch (error) {
      logger.debug({ error: (error as Error).message }, 'cannot tell which policy was loaded yet');
    }
    await clock.sleep(CHECK_EVERY_MS, end);
  }
}
