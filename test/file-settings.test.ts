import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { readConfig } from '../src/base/config.js';
import { silentLogger } from '../src/base/logger.js';
import { SETTINGS } from '../src/base/settings.js';
import { parseAccountsFile, readWorkerAccounts } from '../src/cli/context/accounts.js';
import { formatPublicKey } from '../src/control/keys/signing-key.js';
import { readKeyringFile } from '../src/control/keys/keyring.js';
import { openSigner } from '../src/control/keys/open-signer.js';
import { readPolicyFile } from '../src/control/policy/policy-file.js';
import { startDoor } from '../src/http/start-door.js';
import { createToken, Tokens } from '../src/http/tokens.js';
import { makePrivateKey } from './control/support/keys.js';
import { doorOptions } from './http/support/door-rig.js';
import { newPlatformId } from './support/account.js';

/**
 * Every setting that names a file which says where money goes, who may say so, or with which secret: refused if others
 * can write the file, its folder, or the folder of a link on the way.
 */

const root = mkdtempSync(join(tmpdir(), 'payouts-files-'));
afterAll(() => {
  rmSync(root, { recursive: true });
});

const platformId = newPlatformId();
const privateKey = makePrivateKey();
const PEM = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
const KEYRING = JSON.stringify({
  version: 1,
  keys: [{ name: 'shop', role: 'producer', person: 'Sam', public: formatPublicKey(privateKey) }],
});
const POLICY = `version: 1\nplatformId: "${platformId}"\ndefault: send\nrules: []\n`;
const BASE_URL = 'https://gateway.example';
const account = (given: object) =>
  JSON.stringify([{ platformId, baseUrl: BASE_URL, secretKeyFile: join(root, 'secret'), ...given }]);
const fileOf = (name: string, content: string): string => {
  const path = join(root, name);
  writeFileSync(path, content, { mode: 0o600 });
  return path;
};
fileOf('secret', 'k-files');

interface Row {
  readonly content: string;
  readonly read: (path: string) => unknown;
}

const secretOf = (variable: string, content: string): [string, Row] => [
  `${variable}_FILE`,
  { content, read: (path) => readConfig([variable as 'REDIS_URL'], { [`${variable}_FILE`]: path }) },
];

const ROWS: Readonly<Record<string, Row>> = Object.fromEntries([
  secretOf('GATEWAY_SECRET_KEY', 'k-files'),
  secretOf('REDIS_URL', 'redis://127.0.0.1:6379'),
  secretOf('DASHBOARD_PASSWORD', 'a-long-enough-password'),
  secretOf('NOTIFY_URL', 'https://hooks.example/1'),
  secretOf('NOTIFY_SECRET', 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ='),
  ['PAYOUT_ACCOUNTS_FILE', { content: account({}), read: parseAccountsFile }],
  [
    'GATEWAY_FILE',
    {
      content: 'export default {};',
      read: (path: string) => readWorkerAccounts({ GATEWAY_PLATFORM_ID: String(platformId), GATEWAY_FILE: path }),
    },
  ],
  [
    'gateway of PAYOUT_ACCOUNTS_FILE',
    {
      content: 'export default {};',
      read: (gateway: string) =>
        readWorkerAccounts({ PAYOUT_ACCOUNTS_FILE: fileOf('own.json', JSON.stringify([{ platformId, gateway }])) }),
    },
  ],
  ['PAYOUT_KEYS_FILE', { content: KEYRING, read: (path: string) => readKeyringFile(path) }],
  [
    'PAYOUT_POLICY_FILE',
    { content: POLICY, read: (path: string) => readPolicyFile(path, { platformId, keyring: undefined }) },
  ],
  ['PAYOUT_SIGNER', { content: PEM, read: (path: string) => openSigner(`file:${path}`) }],
  ['PAYOUT_WORKER_SIGNER', { content: PEM, read: (path: string) => openSigner(path) }],
  [
    'SERVE_TOKENS_FILE',
    {
      content: createToken({ name: 'shop', account: platformId, rights: ['enqueue'] }).line,
      read: (path: string) => new Tokens(path, [platformId], false),
    },
  ],
  [
    'SERVE_TLS_KEY_FILE',
    {
      content: PEM,
      read: async (path: string) => {
        const cert = fileOf('no-certificate.pem', PEM);
        await startDoor(
          doorOptions(fileOf('tokens.yaml', '[]'), {
            platformIds: [platformId],
            serveTlsCertFile: cert,
            serveTlsKeyFile: path,
            logger: silentLogger,
          }),
        );
      },
    },
  ],
  [
    'secretKeyFile of PAYOUT_ACCOUNTS_FILE',
    {
      content: 'k-files',
      read: (path: string) =>
        readWorkerAccounts({ PAYOUT_ACCOUNTS_FILE: fileOf('accounts.json', account({ secretKeyFile: path })) }),
    },
  ],
] as const);

/** Whose content others see anyway, and which no one can use without its key. */
const NOT_CHECKED = ['SERVE_TLS_CERT_FILE'];

it('every setting that names a file has its row', () => {
  const rows: readonly { readonly variable: string; readonly secret?: boolean }[] = Object.values(SETTINGS);
  const named = rows.flatMap(({ variable, secret = false }) => [
    ...(secret ? [`${variable}_FILE`] : []),
    ...(/_FILE$|SIGNER$/.test(variable) ? [variable] : []),
  ]);
  expect(
    Object.keys(ROWS)
      .filter((name) => !name.includes(' '))
      .sort(),
  ).toEqual(named.filter((name) => !NOT_CHECKED.includes(name)).sort());
});

/** What refuses a file, if anything does. */
async function refusalOf({ read }: Row, path: string): Promise<string> {
  try {
    await read(path);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

const UNTRUSTED = /is not trusted: others than its owner can write /;

describe.each(Object.entries(ROWS))('%s', (name, row) => {
  const here = join(root, name.replaceAll(' ', '-'));
  const [folder, links] = [join(here, 'folder'), join(here, 'links')];
  const path = join(folder, 'file');
  const link = join(links, 'link');
  mkdirSync(folder, { recursive: true });
  mkdirSync(links);
  writeFileSync(path, row.content, { mode: 0o600 });
  symlinkSync(path, link);

  it('is read if only its owner can write it', async () => {
    for (const each of [path, link]) expect(await refusalOf(row, each)).not.toMatch(UNTRUSTED);
  });

  it('is refused if others can write it, its folder, or the folder of a link to it', async () => {
    for (const [changed, mode, given] of [
      [path, 0o660, path],
      [path, 0o662, path],
      [path, 0o666, path],
      [folder, 0o770, path],
      [folder, 0o777, path],
      [links, 0o777, link],
    ] as const) {
      chmodSync(changed, mode);
      expect([mode, await refusalOf(row, given)]).toEqual([
        mode,
        expect.stringMatching(/is not trusted|is open to every user/),
      ]);
      chmodSync(changed, changed === path ? 0o600 : 0o700);
    }
    expect(await refusalOf(row, path)).not.toMatch(UNTRUSTED);
  });
});
