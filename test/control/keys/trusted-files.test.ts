import { chmodSync, chownSync, symlinkSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { audienceOf } from '../../../src/base/settings.js';
import { readTrustedFile } from '../../../src/base/trusted-file.js';
import { checkAudience, openAudience } from '../../../src/control/keys/audience.js';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { messageOf, useFolder } from '../support/folder.js';
import { keyEntry, testKey } from '../support/keys.js';

/** What a process trusts: a file that nobody else can write, a keyring, one environment. */

const folder = useFolder();
const FILE = 'keys.yaml';

describe('readKeyringFile', () => {
  const keyring = { version: 1, keys: [keyEntry(testKey(1))] };
  const [yaml, json] = [stringify(keyring), JSON.stringify(keyring)];
  const read = (text: string): string[] => {
    folder.write(FILE, text);
    return readKeyringFile(folder.at(FILE), 'PAYOUT_KEYS_FILE').keys.map((key) => key.name);
  };

  it('reads YAML and JSON, and refuses what is no keyring, with setting and file', () => {
    for (const text of [yaml.replaceAll('\n', '\r\n'), `\uFEFF${json}`]) expect(read(text)).toEqual(['shop']);
    const bomb = `a: &a [x]\nb: &b [${Array(9).fill('*a').join()}]\nc: [${Array(12).fill('*b').join()}]`;
    for (const [content, message] of [
      [bomb, /Excessive alias count/],
      ['', /keyring must be "version: 1"/],
      [`${yaml}---\n${yaml}`, /is no YAML: /],
      [`version: 1\n${yaml}`, /is no YAML: Map keys must be unique/],
      [json.replace('producer', 'x'), /keys\.0\.role must be one of/],
    ] as const) {
      expect(() => read(content)).toThrow(message);
      expect(() => read(content)).toThrow(`PAYOUT_KEYS_FILE: ${folder.at(FILE)}`);
    }
    const missing = /PAYOUT_KEYS_FILE: .*none\.yaml cannot be read: ENOENT/;
    expect(() => readKeyringFile(folder.at('none.yaml'), 'PAYOUT_KEYS_FILE')).toThrow(missing);
  });

  it('shows nothing of a private key, or of another secret, that was named in its place', () => {
    const pem = testKey(1).export({ format: 'pem', type: 'pkcs8' }).toString();
    const secret = pem.split('\n')[1] ?? '';
    for (const content of [pem, `keys: "${pem}"`, secret]) {
      const message = messageOf(() => read(content));
      expect(message).toMatch(/holds a private key\. A keyring holds public keys only|keyring must be/);
      expect(message).not.toContain(secret.slice(0, 20));
    }
  });
});

describe('readTrustedFile', () => {
  const file = (name = FILE): string => {
    folder.write(name, 'x');
    return folder.at(name);
  };

  it('accepts what only the owner can write, and refuses what the group or everyone can, also a folder above', () => {
    folder.make('a/b');
    const [path, below] = [file(), file('a/b/keys.yaml')];
    for (const mode of [0o600, 0o755, 0o620, 0o602]) {
      chmodSync(path, mode);
      const found = `can write ${path} (mode 0${mode.toString(8)}). Run \`chmod go-w ${path}\``;
      if ((mode & 0o022) === 0) expect(readTrustedFile(path)).toBe('x');
      else expect(() => readTrustedFile(path)).toThrow(`is not trusted: others than its owner ${found}`);
    }
    chmodSync(path, 0o600);
    // In a folder with the sticky bit only the owner can replace it.
    chmodSync(folder.at(), 0o1777);
    expect([path, below].map(readTrustedFile)).toEqual(['x', 'x']);
    for (const mode of [0o720, 0o702]) {
      chmodSync(folder.at(), mode);
      for (const each of [path, below]) expect(() => readTrustedFile(each)).toThrow(`can write ${folder.at()} `);
    }
  });

  it('follows a link only between folders that nobody else can write', () => {
    const [here, there] = [folder.make('here'), folder.make('there')];
    const link = folder.at('here', FILE);
    symlinkSync(file(`there/${FILE}`), link);
    expect(readTrustedFile(link)).toBe('x');
    for (const path of [here, there]) {
      chmodSync(path, 0o777);
      expect(() => readTrustedFile(link)).toThrow(`can write ${path} `);
      chmodSync(path, 0o755);
    }
  });

  (process.getuid?.() === 0 ? it : it.skip)('refuses what belongs to someone else: a file, and a folder', () => {
    const [path, user] = [file(), 12345];
    chownSync(path, user, user);
    const advice = `is not trusted: ${path} belongs to user ${user}. Run \`chown root ${path}\``;
    expect(() => readTrustedFile(path)).toThrow(advice);
    chownSync(path, 0, 0);
    chownSync(folder.at(), user, user);
    for (const mode of [0o700, 0o1777]) {
      chmodSync(folder.at(), mode);
      expect(() => readTrustedFile(path)).toThrow(`${folder.at()} belongs to user ${user}`);
    }
  });
});

it('an audience is what the setting says, or that of the URL, however that is spelt', () => {
  const GATEWAY = 'https://gateway.example';
  const PRINTABLE = /must be 1 to 200 printable characters/;
  const ofUrl = (baseUrl: string): string => audienceOf({ platformId: 4242, baseUrl });
  expect(audienceOf({ platformId: 1, baseUrl: GATEWAY, audience: 'production' })).toBe('production');
  for (const url of [GATEWAY, 'HTTPS://GATEWAY.Example/', `${GATEWAY}:443//`])
    expect(ofUrl(url)).toBe(`${GATEWAY}#4242`);
  for (const url of ['https://staging.gateway.example', `${GATEWAY}:8443`, `${GATEWAY}/v2`])
    expect(ofUrl(url)).not.toBe(`${GATEWAY}#4242`);
  for (const [source, message] of [
    [{}, /^PAYOUT_AUDIENCE: is required, or GATEWAY_BASE_URL/],
    [{ audience: 'my gateway' }, PRINTABLE],
    [{ audience: 'x'.repeat(201) }, PRINTABLE],
    [{ baseUrl: `${GATEWAY}/${'x'.repeat(200)}` }, /: is required, because GATEWAY_BASE_URL is too/],
  ] as const)
    expect(() => audienceOf({ platformId: 1, ...source })).toThrow(message);
});

it('checkAudience takes this environment only, and what names none until the time of the setting', () => {
  const UNTIL = '2030-01-31T09:00:00Z';
  const clock = { now: Date.parse(UNTIL) - 1, wallNow: () => clock.now };
  const [strict, lenient] = [openAudience('production', undefined, clock), openAudience('production', UNTIL, clock)];
  expect([checkAudience('production', strict), checkAudience(undefined, lenient)]).toEqual([undefined, undefined]);
  const message = expect.stringContaining('it is signed for "staging", and this is "production"');
  expect(checkAudience('staging', strict)).toEqual({ fault: 'wrong_audience', message });
  for (const other of ['Production', '']) expect(checkAudience(other, lenient)?.fault).toBe('wrong_audience');
  expect(checkAudience('\u001b[2Jproduction', strict)?.message).toContain('it is signed for another audience, and');
  clock.now += 1;
  for (const each of [strict, lenient]) expect(checkAudience(undefined, each)?.fault).toBe('no_audience');
});
