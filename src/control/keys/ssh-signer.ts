import { spawn } from 'node:child_process';
import { SignerError } from '../../base/errors.js';
import { SSH_NAMESPACE } from './ssh.js';

const PROGRAM = 'ssh-keygen';

interface SshSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>> | undefined;
  readonly onMessage: (text: string) => void;
}

/**
 * Signs with OpenSSH. The private key may be in an agent, on a hardware key, or in the file beside the public one.
 * OpenSSH itself asks for a passphrase or a touch, so this has no time limit.
 * @param publicKeyFile - `FILE.pub`
 * @param environment - of OpenSSH, which finds the agent by SSH_AUTH_SOCK; by default that of this process
 * @param onMessage - called with OpenSSH's messages, such as that the key waits for a touch
 * @returns the armoured signature
 * @throws SignerError if OpenSSH is missing, lacks the key, or does not sign
 */
export async function signWithSsh(
  publicKeyFile: string,
  text: string,
  { environment, onMessage }: SshSurroundings,
): Promise<string> {
  // -q: it does not say that it reads from stdin.
  const child = spawn(PROGRAM, ['-q', '-Y', 'sign', '-f', publicKeyFile, '-n', SSH_NAMESPACE], {
    env: environment as NodeJS.ProcessEnv | undefined,
  });
  let [signature, messages] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => (signature += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    messages += part;
    onMessage(part);
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  // A program that ends before reading everything gives its reason on stderr.
  child.stdin.on('error', () => undefined).end(text);
  let code: number | null;
  try {
    code = await ended;
  } catch (error) {
    throw new SignerError(
      (error as NodeJS.ErrnoException).code === 'ENOENT'
        ? `${publicKeyFile} needs ${PROGRAM} of OpenSSH 8.2 or newer, which is not in PATH: install it, or sign with a key in a file`
        : `${publicKeyFile} needs ${PROGRAM}, which could not be started: ${(error as Error).message}`,
    );
  }
  if (code === 0) return signature;
  const why =
    messages.trim().replace(/\s*\n\s*/g, '; ') || `it ended with ${code === null ? 'a signal' : `code ${code}`}`;
  throw new SignerError(
    `${publicKeyFile} was not used by ${PROGRAM}: ${why}. Is the key in ssh-agent (\`ssh-add -l\`), or its private key beside it?`,
  );
}
