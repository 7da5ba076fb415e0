import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSigner } from 'payout-queue';

/** A producer's and a worker's key, and a keyring with both: what signed mode needs. */
export type BenchKeys = Awaited<ReturnType<typeof makeBenchKeys>>;

export async function makeBenchKeys() {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-bench-keys-'));
  const keysFile = join(dir, 'keys.json');
  const [shop, host] = [newKey(), newKey()];
  const write = async (name: string, pem: string) => {
    const file = join(dir, `${name}.pem`);
    await writeFile(file, pem, { mode: 0o600 });
    return file;
  };
  const keys = [
    { name: 'shop', role: 'producer', person: 'Shop', public: shop.public },
    { name: 'worker-1', role: 'worker', person: 'Host', public: host.public },
  ];
  await writeFile(keysFile, JSON.stringify({ version: 1, keys }), { mode: 0o600 });
  return {
    producer: { signer: openSigner(await write('shop', shop.pem), { name: 'shop' }) },
    worker: { keysFile, receiptKeyFile: await write('worker-1', host.pem) },
    close: async () => rm(dir, { recursive: true, force: true }),
  };
}

function newKey() {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  return { pem: String(privateKey.export({ format: 'pem', type: 'pkcs8' })), public: `ed25519:${x ?? ''}` };
}
