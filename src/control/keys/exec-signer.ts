import { spawn } from 'node:child_process';
import { type Environment, OWN_ENVIRONMENT } from '../../base/config.js';
import { SignerError } from '../../base/errors.js';
import { toPlainText } from '../../base/plain-text.js';
import { FewAtATime, inTime, SIGN_WITHIN_MS } from './signer.js';

/** Each is a process of its own. */
const PROGRAMS_AT_ONCE = 8;
const LONGEST_ANSWER = 1_000;
const SHOWN_MESSAGE = 300;

/** One signature, as base64url. */
const ANSWER = /^([A-Za-z0-9_-]{86})\r?\n?$/;

/**
 * Signs with a program: the text on its stdin, the signature as base64url on its stdout. There is no shell, and it has
 * no arguments.
 * @param environment - of the program, but for the gateway's secret key
 */
export function execSigner(
  program: string,
  environment: Environment = OWN_ENVIRONMENT,
  limitMs: number = SIGN_WITHIN_MS,
): (text: string) => Promise<string> {
  const few = new FewAtATime(PROGRAMS_AT_ONCE);
  const env = { ...environment, GATEWAY_SECRET_KEY: undefined };
  return async (text) => few.run(async () => inTime(program, async (end) => run(program, text, env, end), limitMs));
}

async function run(program: string, text: string, env: NodeJS.ProcessEnv, end: AbortSignal): Promise<string> {
  // A group of its own, so that what it started ends with it.
  const child = spawn(program, { env, detached: true, stdio: 'pipe' });
  let [answer, messages] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    answer += part;
    if (answer.length > LONGEST_ANSWER) killGroup(child.pid);
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    messages = (messages + part).slice(-SHOWN_MESSAGE);
  });
  // A program that ends before it has read everything says why on stderr.
  child.stdin.on('error', () => undefined).end(text);
  let isOpen = true;
  end.addEventListener('abort', () => {
    if (isOpen) killGroup(child.pid);
  });
  const code = await new Promise<number | string>((resolve, reject) => {
    child
      .once('error', ({ message }) => {
        reject(new SignerError(`${program} cannot be started: ${message}`));
      })
      // Not `exit`: what the program started may still have its output open.
      .once('close', (status, signal) => {
        isOpen = false;
        resolve(status ?? signal ?? 'unknown');
      });
  });
  if (code !== 0) throw new SignerError(`${program} ended with ${code}${describe(messages)}`);
  const signature = ANSWER.exec(answer)?.[1];
  if (signature !== undefined) return signature;
  throw new SignerError(`${program} did not print one signature (86 characters of base64url)${describe(messages)}`);
}

function describe(messages: string): string {
  const text = toPlainText(messages.trim().replaceAll(/\s*\n\s*/g, '; '));
  return text === '' ? '' : `: ${text}`;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
