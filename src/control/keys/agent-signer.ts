import { connect, type Socket } from 'node:net';
import { type Environment, OWN_ENVIRONMENT } from '../../base/config.js';
import { SignerError } from '../../base/errors.js';
import { verifyText } from './ed25519.js';
import { ASKED_AT_ONCE, FewAtATime, inTime, SIGN_WITHIN_MS } from './signer.js';
import { fingerprintOf, parseSshKey, sshField, type SshKey, SshReader } from './ssh.js';

/** Messages of the protocol: draft-ietf-sshm-ssh-agent. */
const REQUEST_IDENTITIES = 11;
const IDENTITIES_ANSWER = 12;
const SIGN_REQUEST = 13;
const SIGN_RESPONSE = 14;
/** OpenSSH takes no longer ones, and sends none. */
const LONGEST_ANSWER = 256 * 1024;

/**
 * Signs with a key of an ssh-agent. Its Ed25519 signature of a text is the plain one.
 * @param fingerprint - as `ssh-add -l` prints it: `SHA256:` and 43 characters
 * @param environment - has SSH_AUTH_SOCK
 */
export function agentSigner(
  fingerprint: string,
  environment: Environment = OWN_ENVIRONMENT,
  limitMs: number = SIGN_WITHIN_MS,
): (text: string) => Promise<string> {
  const few = new FewAtATime(ASKED_AT_ONCE);
  let known: AgentKey | undefined;
  const ask = async (text: string, end: AbortSignal): Promise<string> => {
    const { SSH_AUTH_SOCK: socketPath } = environment;
    if (!socketPath) throw new SignerError('SSH_AUTH_SOCK, which names the socket of the ssh-agent, is not set');
    const agent = new AgentConnection(socketPath);
    end.addEventListener('abort', () => {
      agent.close();
    });
    try {
      known ??= await findKey(agent, fingerprint);
      return await signWith(agent, known, text);
    } catch (error) {
      // The next one is told whether the agent still has it.
      known = undefined;
      throw error;
    }
  };
  return async (text) => few.run(async () => inTime('The ssh-agent', async (end) => ask(text, end), limitMs));
}

interface AgentKey {
  readonly blob: Buffer;
  readonly key: SshKey;
}

async function findKey(agent: AgentConnection, fingerprint: string): Promise<AgentKey> {
  const answer = await agent.ask(REQUEST_IDENTITIES, IDENTITIES_ANSWER);
  for (let left = answer.uint32(); left > 0; left -= 1) {
    const blob = answer.bytes();
    // Its comment.
    answer.bytes();
    const key = parseKey(blob);
    if (key === undefined || fingerprintOf(key) !== fingerprint) continue;
    if (key.type === 'ssh-ed25519') return { blob, key };
    throw new SignerError(
      `The key ${fingerprint} is a hardware key, which signs in another form: give its file (ssh:)`,
    );
  }
  throw new SignerError(`The ssh-agent has no Ed25519 key ${fingerprint}: \`ssh-add -l\` lists what it has`);
}

/** @returns undefined for a key of another kind */
function parseKey(blob: Buffer): SshKey | undefined {
  try {
    return parseSshKey(blob);
  } catch {
    return undefined;
  }
}

async function signWith(agent: AgentConnection, { blob, key: { key } }: AgentKey, text: string): Promise<string> {
  const flags = Buffer.alloc(4);
  const request = Buffer.concat([sshField(blob), sshField(text), flags]);
  const answer = new SshReader((await agent.ask(SIGN_REQUEST, SIGN_RESPONSE, request)).bytes());
  const type = answer.text();
  const signature = answer.bytes().toString('base64url');
  if (type === 'ssh-ed25519' && verifyText(text, signature, key)) return signature;
  throw new SignerError('The ssh-agent answered with a signature of another key, or of another text');
}

/** Asks an agent one thing after the other. */
class AgentConnection {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #failure: SignerError | undefined;
  #settle: (() => void) | undefined;

  constructor(socketPath: string) {
    this.#socket = connect(socketPath);
    this.#socket
      .on('data', (data) => {
        this.#received = Buffer.concat([this.#received, data]);
        this.#settle?.();
      })
      .on('error', ({ message }) => {
        this.#fail(`The ssh-agent cannot be reached: ${message}`);
      })
      .on('close', () => {
        this.#fail('The ssh-agent closed the connection without an answer');
      });
  }

  close(): void {
    this.#socket.destroy();
  }

  /** @throws SignerError if the agent refuses, or answers anything else */
  async ask(type: number, wanted: number, content: Buffer = Buffer.alloc(0)): Promise<SshReader> {
    this.#socket.write(sshField(Buffer.concat([Buffer.of(type), content])));
    await new Promise<void>((resolve) => {
      this.#settle = () => {
        if (this.#isWhole() || this.#failure !== undefined) resolve();
      };
      this.#settle();
    });
    if (this.#failure !== undefined && !this.#isWhole()) throw this.#failure;
    const answer = this.#received.subarray(4);
    this.#received = Buffer.alloc(0);
    if (answer[0] === wanted) return new SshReader(answer.subarray(1));
    throw new SignerError('The ssh-agent refused to sign: is it locked, or was a question of it declined?');
  }

  /** Notes a failure if there is more than one answer. */
  #isWhole(): boolean {
    if (this.#received.length < 4) return false;
    const length = this.#received.readUInt32BE();
    const isTooLong = length > LONGEST_ANSWER || this.#received.length > 4 + length;
    if (isTooLong)
      this.#failure ??= new SignerError('The ssh-agent gave more than one answer, or no answer of an agent');
    return !isTooLong && this.#received.length === 4 + length;
  }

  #fail(message: string): void {
    this.#failure ??= new SignerError(message);
    this.#settle?.();
  }
}
