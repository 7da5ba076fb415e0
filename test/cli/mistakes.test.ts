import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { useCli } from './support/cli-rig.js';

/**
 * What people got wrong in their first hour, in settings, files and commands: none ends raw, none in silence. Of calls
 * from code test/options.test.ts has the same table.
 */

const cli = useCli();

const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const PAYOUT = ['--payout-id', 'p-1', '--payment-id', '6', '--amount', '12.5', '--address-to', ADDRESS];
const enqueue = (...changed: readonly [flag: string, value: string]) =>
  ['enqueue', ...PAYOUT.map((word, index) => (PAYOUT[index - 1] === changed[0] ? changed[1] : word))] as const;
const HEAD = 'payout_id,payment_id,amount,address_to';

type Settings = Readonly<Record<string, string>>;
type Mistake = readonly [args: readonly string[], settings: Settings, message: RegExp];

/** A value `FILE:TEXT` is the path of a file that has this. */
const SETTINGS: Readonly<Record<string, Mistake>> = {
  'no account': [['stats'], { GATEWAY_PLATFORM_ID: '' }, /GATEWAY_PLATFORM_ID: is required/],
  'an account that is no number': [
    ['stats'],
    { GATEWAY_PLATFORM_ID: 'shop' },
    /GATEWAY_PLATFORM_ID: must be a whole number.*\(got "shop"\)/,
  ],
  'a misspelt setting': [
    ['stats'],
    { GATEWAY_PLATFORM_ID: '', GATEWAY_PLATFROM_ID: '7' },
    /is GATEWAY_PLATFROM_ID misspelt\?/,
  ],
  'an address of Redis without a scheme': [
    ['stats'],
    { REDIS_URL: '127.0.0.1:6379' },
    /REDIS_URL: must begin with redis:\/\//,
  ],
  'an address of Redis of another scheme': [
    ['stats'],
    { REDIS_URL: 'http://127.0.0.1:6379' },
    /REDIS_URL: must begin with redis:\/\//,
  ],
  'a Redis that nobody listens for': [
    ['stats'],
    { REDIS_URL: 'redis://127.0.0.1:1' },
    /ECONNREFUSED 127\.0\.0\.1:1.*check .*REDIS_URL/,
  ],
  'a database that Redis does not have': [['stats'], { REDIS_URL: 'redis://127.0.0.1:6379/99x' }, /REDIS_URL: /],
  'a gateway without https': [
    ['gateway', 'balance'],
    { GATEWAY_BASE_URL: 'http://gateway.example', GATEWAY_SECRET_KEY: 'k-1' },
    /GATEWAY_BASE_URL: must begin with https:\/\//,
  ],
  'a gateway that is no URL': [
    ['gateway', 'balance'],
    { GATEWAY_BASE_URL: 'gateway.example', GATEWAY_SECRET_KEY: 'k-1' },
    /GATEWAY_BASE_URL: must be a URL such as https:\/\/gateway\.example/,
  ],
  'no secret key': [
    ['gateway', 'balance'],
    { GATEWAY_BASE_URL: 'https://gateway.example' },
    /GATEWAY_SECRET_KEY: is required \(or GATEWAY_SECRET_KEY_FILE, a file that holds it\)/,
  ],
  'an interval under a second': [
    ['worker'],
    { WITHDRAW_INTERVAL_MS: '500' },
    /WITHDRAW_INTERVAL_MS: must be a whole number from 1000 .*\(got "500"\)/,
  ],
  'a time with its unit': [
    ['worker'],
    { LEASE_MS: '10s' },
    /LEASE_MS: must be a whole number from 500 .*\(got "10s"\)/,
  ],
  'a port that is none': [
    ['worker'],
    { HEALTH_PORT: '99999' },
    /HEALTH_PORT: must be a whole number from 0 to 65535 \(got "99999"\)/,
  ],
  'a level of the log that is none': [
    ['worker'],
    { LOG_LEVEL: 'verbose' },
    /LOG_LEVEL: must be one of .*info.* \(got "verbose"\)/,
  ],
  'a yes that is not true': [
    ['worker'],
    { ALLOW_VOLATILE_REDIS: 'yes' },
    /ALLOW_VOLATILE_REDIS: must be true or false \(got "yes"\)/,
  ],
  'an API that is none': [['gateway', 'balance'], { GATEWAY_API: '2' }, /GATEWAY_API: must be v1 or v2 \(got "2"\)/],
};

const FILES: Readonly<Record<string, Mistake>> = {
  'a secret in a file that is missing': [
    ['gateway', 'balance'],
    { GATEWAY_SECRET_KEY_FILE: '/no/such/file' },
    /GATEWAY_SECRET_KEY_FILE: cannot be read: ENOENT/,
  ],
  'a keyring that is missing': [
    ['keys', 'check'],
    { PAYOUT_KEYS_FILE: '/no/such/keys.yaml' },
    /PAYOUT_KEYS_FILE: \/no\/such\/keys\.yaml cannot be read: ENOENT/,
  ],
  'a keyring that is no YAML': [
    ['keys', 'check'],
    { PAYOUT_KEYS_FILE: 'FILE:keys: [' },
    /PAYOUT_KEYS_FILE: .* is no YAML: .* at line 2, column 1/,
  ],
  'a keyring of another version': [
    ['keys', 'check'],
    { PAYOUT_KEYS_FILE: 'FILE:version: 2\nkeys: []\n' },
    /PAYOUT_KEYS_FILE: .*version.*1/,
  ],
  'a policy that is missing': [
    ['policy', 'check', '/no/such/policy.yaml'],
    {},
    /policy\.yaml.*ENOENT|ENOENT.*policy\.yaml/,
  ],
  'a policy with a number for a text': [
    ['policy', 'check'],
    { PAYOUT_POLICY_FILE: 'FILE:version: 1\nplatformId: 7\ndefault: send\nrules: []\n' },
    /platformId/,
  ],
  'accounts that are no JSON': [['stats'], { PAYOUT_ACCOUNTS_FILE: 'FILE:{' }, /PAYOUT_ACCOUNTS_FILE: .*JSON/],
  'accounts that are no list': [
    ['stats'],
    { PAYOUT_ACCOUNTS_FILE: 'FILE:{}' },
    /PAYOUT_ACCOUNTS_FILE: .*must be a list/,
  ],
  'no account in the list': [
    ['stats'],
    { PAYOUT_ACCOUNTS_FILE: 'FILE:[]' },
    /PAYOUT_ACCOUNTS_FILE: .*must name at least one account/,
  ],
  'a file of payouts that is missing': [['import', '/no/such/payouts.csv', '--yes'], {}, /\/no\/such\/payouts\.csv/],
  'a folder for a file of payouts': [['import', '/tmp', '--yes'], {}, /\/tmp/],
};

const rows = (...lines: readonly string[]) => `${[HEAD, ...lines].join('\n')}\n`;

/** A file to import, and what its error says. */
const IMPORTS: Readonly<Record<string, readonly [text: string, message: RegExp]>> = {
  'an empty file': ['', /no payouts|is empty/],
  'a file without its head': [`p-1,6,12.5,${ADDRESS}\n`, /payout_id/],
  'a column that is none': [`${HEAD},adress\np-1,6,12.5,${ADDRESS},x\n`, /adress/],
  'an amount with a comma': [rows(`p-1,6,"1,000",${ADDRESS}`), /line 2: amount: has a comma/],
  'an amount in cents of a cent': [
    rows(`p-1,6,0.0000000000000000001,${ADDRESS}`),
    /line 2: amount: must be a decimal string/,
  ],
  'an address with a letter missing': [
    rows('p-1,6,12.5,0x52908400098527886E0F7030069857D2E4169EE'),
    /line 2: address_to: /,
  ],
  'a word for no address': [rows('p-1,6,12.5,null'), /line 2: address_to: is no address/],
  'an id twice': [rows(`p-1,6,12.5,${ADDRESS}`, `p-1,6,13,${ADDRESS}`), /line 3: payout_id: /],
  'an id with a space': [rows(`"p 1",6,12.5,${ADDRESS}`), /line 2: payout_id: must be 1 to 64 of/],
  'a currency by its name': [
    rows(`p-1,USDT,12.5,${ADDRESS}`),
    /line 2: payment_id: must be a whole number.*\(got "USDT"\)/,
  ],
  'a value too few': [`${HEAD}\np-1,6,12.5\n`, /line 2: .*values/],
  'a number for an amount': [
    '{"payoutId":"p-1","paymentId":6,"amount":12.5,"addressTo":"x"}\n',
    /a number would lose digits/,
  ],
};

const COMMANDS: Readonly<Record<string, Mistake>> = {
  'a command that is none': [['stat'], {}, /unknown command 'stat'\n\(Did you mean .*stat/],
  'a flag that is none': [['stats', '--jsn'], {}, /unknown option '--jsn'\n\(Did you mean --json\?\)/],
  'a flag without its value': [['enqueue', '--payout-id'], {}, /argument missing/],
  'a missing flag': [
    ['enqueue', '--payout-id', 'p-1'],
    {},
    /--payment-id: is missing\n.*--amount: is missing\n.*--address-to: is missing/,
  ],
  'a negative amount': [enqueue('--amount', '-1'), {}, /amount.*\(got "-1"\)/],
  'an amount of nothing': [enqueue('--amount', '0'), {}, /amount: must be more than 0 \(got "0"\)/],
  'an id of dots': [enqueue('--payout-id', '..'), {}, /payout-id: must not have \. or \.\. alone.*\(got "\.\."\)/],
  'a private key for an address': [
    enqueue('--address-to', 'L1aW4aubDFB7yfras2S1mN3bqg9nwySY8nkoLmJebSLD5BWv3ENZ'),
    {},
    /address-to: is a private key/,
  ],
  'a payout that is not there': [['get', 'nobody'], {}, /nobody/],
  'a state that is none': [['list', '--state', 'pending'], {}, /--state.*pending.*queued/s],
  'a time that is none': [['list', '--state', 'queued', '--since', 'yesterday'], {}, /--since: .*\(got "yesterday"\)/],
  'no reason': [['reject', 'p-1', '--key', 'ann.pem'], {}, /required option '--reason <text>'/],
  'a reason that was not filled in': [['pause', '--reason', 'WHY'], {}, /reason: must be your own/],
  'neither id nor file': [
    ['cancel', '--reason', 'ticket 8'],
    {},
    /give a payoutId, --batch, --state, --message or --file/,
  ],
  'an account that is not the one of the settings': [
    ['stats', '--account', '7'],
    {},
    /--account: is not the account of GATEWAY_PLATFORM_ID.*\(got "7"\)/,
  ],
  'a resolution without what was found': [
    ['resolve', 'p-1', '--reason', 'ticket 8'],
    {},
    /--sent.*--not-sent.*--write-off/s,
  ],
  'a decision without a key': [['approve', 'p-1', '--yes'], {}, /PAYOUT_KEYS_FILE: is required|--key/],
};

async function expectNamed([args, settings, message]: Mistake) {
  for (const [name, value] of Object.entries(settings))
    cli.env[name] = value.startsWith('FILE:') ? await cli.file(name.toLowerCase(), value.slice(5)) : value;
  const { code, stdout, stderr } = await cli.run(...args);
  expect({ code, stderr }).toEqual({ code: expect.any(Number), stderr: expect.stringMatching(message) });
  expect([args, code === 0]).toEqual([args, false]);
  expect(stdout).toBe('');
  expect(stderr).not.toMatch(/^ +at |\b(Type|Reference|Range|Syntax)Error\b|\[object |\bundefined\b/m);
}

it.each(Object.entries({ ...SETTINGS, ...FILES, ...COMMANDS }))('%s is named', async (_, mistake) =>
  expectNamed(mistake),
);

it.each(Object.entries(IMPORTS))('%s is named, and nothing of it is enqueued', async (_, [text, message]) => {
  const path = join(cli.dir, text.startsWith('{') ? 'payouts.jsonl' : 'payouts.csv');
  await writeFile(path, text);
  await expectNamed([['import', path, '--yes'], {}, message]);
  expect(await cli.ledger.get('p-1')).toBeUndefined();
});

it('a secret that everyone can read is named, with the command that ends that', async () => {
  const path = await cli.file('secret', 'k-1');
  await chmod(path, 0o644);
  const message = /GATEWAY_SECRET_KEY_FILE: is open to every user of this machine \(mode 0644\): run `chmod o-rw /;
  await expectNamed([['gateway', 'balance'], { GATEWAY_SECRET_KEY_FILE: path }, message]);
});

it.each([
  [
    'a file is in its place',
    'file',
    /the folder ".*file" cannot be used: ENOTDIR.*A file is in the way: move it, or name a folder\./,
  ],
  ['a file is in its way', 'file/below', /the folder ".*file\/below" cannot be used: ENOTDIR.*A file is in the way/],
])('a journal folder is named if %s', async (_, name, message) => {
  await mkdir(join(cli.dir, 'journals'));
  await cli.file('journals/file', 'x');
  const SEND_JOURNAL_DIR = join(cli.dir, 'journals', name);
  const args = ['audit', 'adopt-journal', '--yes', '--reason', 'ticket 8'];
  await expectNamed([args, { SEND_JOURNAL_DIR }, new RegExp(`SEND_JOURNAL_DIR \\(journalDir\\): ${message.source}`)]);
});
