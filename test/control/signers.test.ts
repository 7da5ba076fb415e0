import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync } from 'node:fs';
import { beforeEach, expect, it } from '@jest/globals';
import { SignerError, StoppedError } from '../../src/base/errors.js';
import { intentOf } from '../../src/control/intents/intent.js';
import { verifyIntent } from '../../src/control/intents/verify-intent.js';
import { openSigner, type SignerOptions } from '../../src/control/keys/open-signer.js';
import { SIGN_WITHIN_MS, type Signer, trySigner } from '../../src/control/keys/signer.js';
import { account } from '../ledger/support/use-account.js';
import { payoutInput } from '../producer/support/payout-input.js';
import { openProducer, useProducer, waiting } from '../producer/support/use-producer.js';
import { until } from '../support/until.js';
import { afterTest } from '../worker/support/close-after-test.js';
import { useFolder } from './support/folder.js';
import { keyEntry, keyringOf, TEST_AUDIENCE, testKey } from './support/keys.js';
import { signText } from './support/sign-at-once.js';
import { startAgentProxy, startSshAgent } from './support/ssh-agent.js';

/** Signers whose key is elsewhere: in an ssh-agent, behind a program. */

const folder = useFolder();
useProducer();

const IDENTITIES_ANSWER = 12;
const SIGN_RESPONSE = 14;
/** How long a signer may take. */
const timeoutMs = 1_000;
const SOON_MS = 4_000;

let agent: Awaited<ReturnType<typeof startSshAgent>>;
beforeEach(async () => {
  agent = await startSshAgent(folder.at());
  afterTest(async () => agent.stop());
});

const keyring = () => keyringOf({ ...keyEntry(testKey(1)), public: agent.public });

const openAgent = (socket = agent.socket, options: SignerOptions = {}) =>
  openSigner(agent.from, { name: 'shop', environment: { SSH_AUTH_SOCK: socket }, timeoutMs, ...options });

const producerWith = (signer: Signer) => openProducer({ signer, audience: TEST_AUDIENCE });

async function isVerified(payoutId: string) {
  const payout = await account.ledger.require(payoutId);
  if (payout.signed === undefined) return false;
  const intent = intentOf(account.platformId, payout, payout.signed);
  return verifyIntent(intent, payout.signed, keyring(), Date.now()).kind === 'verified';
}

/** Through a proxy that alters the agent's answers. */
async function openFaulty(answers: Parameters<typeof startAgentProxy>[2]) {
  const path = folder.at('proxy');
  const proxy = await startAgentProxy(path, agent.socket, answers);
  afterTest(async () => proxy.close());
  return { signer: openAgent(path), counts: proxy.counts };
}

/** @returns the message of the error, once nothing is stored and all has ended in time */
async function refusalOf(signer: Signer, soonMs = SOON_MS) {
  const [startedAt, producer] = [performance.now(), producerWith(signer)];
  const calls = ['p-1', 'p-2'].map(async (payoutId) => producer.enqueue(payoutInput({ payoutId })));
  const ended = await Promise.allSettled([...calls, producer.enqueueMany([payoutInput({ payoutId: 'p-3' })])]);
  expect(performance.now() - startedAt).toBeLessThan(soonMs);
  for (const payoutId of ['p-1', 'p-2', 'p-3']) expect(await account.ledger.get(payoutId)).toBeUndefined();
  const errors = ended.map((each) => (each.status === 'rejected' ? (each.reason as unknown) : undefined));
  for (const error of errors) expect(error).toBeInstanceOf(SignerError);
  return (errors[0] as SignerError).message;
}

it('an ssh-agent signs payouts with a key that no file has', async () => {
  expect(agent.printed).toContain(agent.from.slice('agent:'.length));
  for (const options of [{}, { keyring: keyring() }, { keyring: keyring(), role: 'producer' as const }])
    await trySigner(openAgent(agent.socket, options), keyring().find('shop'));
  await producerWith(openAgent()).enqueue(payoutInput());
  expect(await isVerified('p-1')).toBe(true);
});

it('of a thousand payouts at once, an agent signs 32 at a time; calls pass to the queue in their order', async () => {
  const { signer, counts } = await openFaulty({});
  const ids = Array.from({ length: 1_000 }, (_, index) => `q-${index}`);
  await producerWith(signer).enqueueMany(ids.map((payoutId) => payoutInput({ payoutId })));
  expect(counts.all).toBe(1_000);
  expect(counts.most).toBeGreaterThan(1);
  expect(counts.most).toBeLessThanOrEqual(32);
  for (const payoutId of [ids[0], ids[999]]) expect(await isVerified(payoutId ?? '')).toBe(true);
  // The first answer comes last.
  let answers = 0;
  const slow: Signer = {
    name: 'shop',
    sign: async (text) => {
      answers += 1;
      await new Promise((resolve) => setTimeout(resolve, 300 - 50 * answers));
      return openAgent().sign(text);
    },
  };
  const other = producerWith(slow);
  await Promise.all(['a', 'b', 'c'].map(async (payoutId) => other.enqueue(payoutInput({ payoutId }))));
  await until('they have jobs', async () => (await waiting()).length === 1_003);
  expect((await waiting()).slice(-3)).toEqual(['a', 'b', 'c']);
});

it.each<[string, Parameters<typeof startAgentProxy>[2], RegExp]>([
  ['hangs before it lists its keys', { [IDENTITIES_ANSWER]: () => undefined }, /did not answer within 1 s/],
  ['hangs while it signs', { [SIGN_RESPONSE]: () => undefined }, /did not answer within 1 s/],
  ['dies while it signs', { [SIGN_RESPONSE]: (_, __, client) => client.destroy() }, /closed the connection without/],
  [
    'answers twice',
    {
      [SIGN_RESPONSE]: (answer, reply) => {
        reply(Buffer.concat([answer, answer]));
      },
    },
    /more than one answer/,
  ],
  [
    'answers with another signature',
    {
      [SIGN_RESPONSE]: (answer, reply) => {
        reply(Buffer.concat([answer.subarray(0, -64), randomBytes(64)]));
      },
    },
    /a signature of another key, or of another text/,
  ],
  [
    'refuses',
    {
      [SIGN_RESPONSE]: (_, reply) => {
        reply(Buffer.from([0, 0, 0, 1, 5]));
      },
    },
    /refused to sign/,
  ],
  [
    'has no key',
    {
      [IDENTITIES_ANSWER]: (_, reply) => {
        reply(Buffer.from([0, 0, 0, 5, 12, 0, 0, 0, 0]));
      },
    },
    /has no Ed25519 key/,
  ],
])('if an agent %s, enqueue says so in time and stores nothing', async (_, answers, message) => {
  const { signer } = await openFaulty(answers);
  expect(await refusalOf(signer)).toMatch(message);
});

it('if there is no agent, or it has another key, nothing is stored', async () => {
  expect(await refusalOf(openAgent(folder.at('none')))).toMatch(/cannot be reached: .*ENOENT/);
  const otherKeyring = keyringOf(keyEntry(testKey(1)));
  expect(() => openAgent(agent.socket, { keyring: otherKeyring, role: 'producer' })).toThrow(/has no such key/);
});

const hanging = async () => new Promise<never>(() => undefined);

it("an application's own signer has the limits of an agent", async () => {
  const [asked, open] = [{ most: 0 }, new Set<string>()];
  const slow: Signer = {
    name: 'shop',
    sign: async (text) => {
      open.add(text);
      asked.most = Math.max(asked.most, open.size);
      await new Promise((resolve) => setTimeout(resolve, 5));
      open.delete(text);
      return openAgent().sign(text);
    },
  };
  const inputs = Array.from({ length: 100 }, (_, index) => payoutInput({ payoutId: `q-${index}` }));
  await producerWith(slow).enqueueMany(inputs);
  expect(asked.most).toBe(32);
  expect(await refusalOf({ name: 'shop', sign: hanging }, 2 * SIGN_WITHIN_MS)).toBe(
    'The signer "shop" did not answer within 5 s',
  );
}, 30_000);

it('an aborted call ends before its signature comes, enqueues nothing, and holds up none after it', async () => {
  const asked: string[] = [];
  let isHanging = true;
  const sign = async (text: string) => {
    asked.push(text);
    return isHanging ? hanging() : openAgent().sign(text);
  };
  const [producer, stop] = [producerWith({ name: 'shop', sign }), new AbortController()];
  const startedAt = performance.now();
  const call = async (payoutId: string, signal?: AbortSignal) =>
    producer.enqueue(payoutInput({ payoutId }), { signal });
  const [first, second] = [call('p-1', stop.signal), call('p-2', stop.signal)];
  await until('they are asked', () => asked.length === 2);
  isHanging = false;
  const after = call('p-3');
  await until('it is asked', () => asked.length === 3);
  stop.abort();
  for (const aborted of [first, second]) await expect(aborted).rejects.toThrow(StoppedError);
  expect(await after).toMatchObject({ payoutId: 'p-3', created: true });
  await expect(call('p-4', stop.signal)).rejects.toThrow('Payout p-4 was not enqueued: the call was aborted');
  expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
  expect(asked).toHaveLength(3);
  for (const payoutId of ['p-1', 'p-2', 'p-4']) expect(await account.ledger.get(payoutId)).toBeUndefined();
});

const openProgram = (script: string, environment: Record<string, string> = {}) => {
  folder.write('signer', `#!/bin/sh\n${script}\n`, 0o700);
  const { PATH = '' } = process.env;
  const options = {
    name: 'shop',
    keyring: keyringOf(keyEntry(testKey(1))),
    environment: { PATH, ...environment },
    timeoutMs,
  };
  return openSigner(`exec:${folder.at('signer')}`, options);
};

it('a program signs what it reads, without a shell and without the secret of the gateway', async () => {
  const text = 'payout-queue $(touch x) `ä`\n';
  folder.write('answer', signText(text, testKey(1)));
  const script = `cat > ${folder.at('read')}; printf %s "$GATEWAY_SECRET_KEY" > ${folder.at('secret')}; cat ${folder.at('answer')}`;
  const signer = openProgram(script, { GATEWAY_SECRET_KEY: 'k-secret' });
  expect(await signer.sign(text)).toBe(signText(text, testKey(1)));
  expect([readFileSync(folder.at('read'), 'utf8'), readFileSync(folder.at('secret'), 'utf8')]).toEqual([text, '']);
});

it.each<[string, (answer: string) => string, RegExp]>([
  ['hangs, with what it started', () => `sleep 60 & echo $! > child; wait`, /did not answer within 1 s/],
  ['fails', () => 'echo "no session \x1b[2J" >&2; exit 3', /ended with 3: no session \\u\{1b\}\[2J/],
  ['is killed', () => 'kill -9 $$', /ended with SIGKILL/],
  ['prints nothing', () => 'cat > /dev/null', /did not print one signature/],
  ['answers twice', (answer) => `echo ${answer}; echo ${answer}`, /did not print one signature/],
  ['answers for another text', (answer) => `echo ${answer}`, /is no signature of the key "shop"/],
  ['prints without an end', () => 'yes', /ended with SIGKILL/],
])('if a program %s, enqueue says so in time and stores nothing', async (_, script, message) => {
  const signer = openProgram(`cd ${folder.at()}; ${script(signText('another', testKey(1)))}`);
  expect(await refusalOf(signer)).toMatch(message);
  if (!_.startsWith('hangs')) return;
  const child = Number(readFileSync(folder.at('child'), 'utf8'));
  await until('what it started has ended', () => hasEnded(child));
});

function hasEnded(pid: number) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
}

it('a program needs the keyring, and a file that nobody else can write', () => {
  openProgram('true');
  expect(() => openSigner(`exec:${folder.at('signer')}`, { name: 'shop' })).toThrow(
    /needs the key's name and the keyring/,
  );
  chmodSync(folder.at('signer'), 0o722);
  const options = { name: 'shop', keyring: keyringOf(keyEntry(testKey(1))) };
  expect(() => openSigner(`exec:${folder.at('signer')}`, options)).toThrow(/is not trusted: others than its owner/);
  expect(() => openSigner(`exec:${folder.at('none')}`, options)).toThrow(/none cannot be read: ENOENT/);
  expect(() => openSigner(`exec:x`, { ...options, name: 'bob' })).toThrow(/^name: must be a key of the keyring/);
});
