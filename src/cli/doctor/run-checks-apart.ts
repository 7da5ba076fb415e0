import { type ChildProcess, spawn } from 'node:child_process';
import { within } from '../../base/clock.js';
import { type BeginCheck, type CheckResult, hanging, problem } from './check-result.js';

/**
 * Runs the checks in a process of their own: one that hangs in an access to a disk cannot be ended from within. It is
 * left behind, and another goes on with the other checks.
 */

/** Longer than a check may take by itself. */
const CHECK_WITHIN_MS = 40_000;

/** The checks that hung, in the environment of the process with the others. */
const HUNG_CHECKS = 'PAYOUTS_DOCTOR_HUNG';

type Message = { readonly begins: string } | { readonly result: CheckResult } | 'end';

const labelOf = (name: string, platformId?: number): string => `${platformId ?? ''} ${name}`;

/** @param program - the arguments of the process with the checks */
export async function* runChecksApart(program: readonly string[]): AsyncGenerator<CheckResult> {
  const shown = new Set<string>();
  const hung: string[] = [];
  for (;;) {
    const child = spawn(process.execPath, program, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, [HUNG_CHECKS]: JSON.stringify(hung) },
    });
    const next = readMessages(child);
    let current = '';
    const done = new Set<string>();
    try {
      for (;;) {
        const message = await within(CHECK_WITHIN_MS, next());
        if (message === 'end') return;
        if (message === undefined || message === 'gone') {
          const [platformId, ...name] = current.split(' ');
          const found =
            message === 'gone' ? problem('its process ended', 'See the error above.') : hanging(CHECK_WITHIN_MS);
          yield { name: name.join(' ') || 'checks', ...(platformId && { platformId: Number(platformId) }), ...found };
          if (current === '' || hung.includes(current)) return;
          hung.push(current);
          break;
        }
        if ('begins' in message) current = message.begins;
        else {
          const label = labelOf(message.result.name, message.result.platformId);
          done.add(label);
          if (!shown.has(label)) yield message.result;
        }
      }
    } finally {
      child.removeAllListeners();
      child.kill('SIGKILL');
      if (child.connected) child.disconnect();
      child.unref();
    }
    for (const label of done) shown.add(label);
  }
}

function readMessages(child: ChildProcess): () => Promise<Message | 'gone'> {
  const waiting: (Message | 'gone')[] = [];
  let wake = (): void => undefined;
  const take = (message: Message | 'gone'): void => {
    waiting.push(message);
    wake();
  };
  child.on('message', (message) => {
    take(message as Message);
  });
  for (const event of ['exit', 'error']) {
    child.once(event, () => {
      take('gone');
    });
  }
  return async () => {
    if (waiting.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    return waiting.shift() ?? 'gone';
  };
}

/** In the process with the checks: tells its parent of each begin and result. */
export async function reportChecks(run: (begin: BeginCheck) => AsyncGenerator<CheckResult>): Promise<void> {
  const hung = JSON.parse(process.env[HUNG_CHECKS] ?? '[]') as readonly string[];
  const tell = async (message: Message): Promise<void> =>
    new Promise((resolve) => {
      if (
        process.send?.(message, () => {
          resolve();
        }) === undefined
      )
        resolve();
    });
  // Its parent gave it up, or was ended.
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  const begin: BeginCheck = (name, platformId) => {
    const label = labelOf(name, platformId);
    void tell({ begins: label });
    return !hung.includes(label);
  };
  for await (const result of run(begin)) await tell({ result });
  await tell('end');
}
