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
  const read = (name = FILE): string[] =>
    readKeyringFile(folder.at(name), 'PAYOUT_KEYS_FILE').keys.map((key) => key.name);

  it('reads YAML and JSON, also with CRLF, a BOM or comments', () => {
    for (const text of [yaml.replaceAll('\n', '\r\n'), `\uFEFF${json}`, `# keys\n---\n${yaml}...\n`]) {
      folder.write(FILE, text);
      expect(read()).toEqual(['shop']);
    }
  });

  const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
    .concat(Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`))
    .join('\n');
  it.each<[string, string, RegExp]>([
    ['an empty file', '', /keyring must be "version: 1"/],
    ['two documents', `${yaml}---\n${yaml}`, /is no YAML: /],
    ['a field twice', `version: 1\n${yaml}`, /is no YAML: Map keys must be unique/],
    ['anchors that explode', bomb, /Excessive alias count/],
    ['a problem of a key', json.replace('producer', 'x'), /keys\.0\.role must be one of/],
  ])('refuses %s, and names setting and file', (_, content, message) => {
    folder.write(FILE, content);
    expect(read).toThrow(message);
    expect(read).toThrow(`PAYOUT_KEYS_FILE: ${folder.at(FILE)}`);
  });

  it('shows nothing of a private key, or of another secret, that was named in its place', () => {
    const pem = testKey(1).export({ format: 'pem', type: 'pkcs8' }).toString();
    const secret = pem.split('\n')[1] ?? '';
    const indented = `keys:\n  - name: |\n      ${pem.replaceAll('\n', '\n      ')}`;
    for (const content of [pem, `keys: "${pem}"`, indented, secret]) {
      folder.write(FILE, content);
      const message = messageOf(read);
      expect(message).toMatch(/holds a private key\. A keyring holds public keys only|keyring must be/);
      expect(message).not.toContain(secret.slice(0, 20));
    }
    expect(() => read('none.yaml')).toThrow(/PAYOUT_KEYS_FILE: .*none\.yaml cannot be read: ENOENT/);
  });
});

describe('readTrustedFile', () => {
  const file = (): string => {
    folder.write(FILE, 'x');
    return folder.at(FILE);
  };

  it('accepts a file and a folder that only the owner can write, or a folder where only he can replace it', () => {
    const path = file();
    for (const mode of [0o600, 0o755]) {
      chmodSync(path, mode);
      expect(readTrustedFile(path)).toBe('x');
    }
    chmodSync(folder.at(), 0o1777);
    expect(readTrustedFile(path)).toBe('x');
  });

  it('refuses what the group or everyone can write, file, folder or a folder above, and says what to do', () => {
    const path = file();
    for (const mode of [0o620, 0o602]) {
      chmodSync(path, mode);
      const found = `can write ${path} (mode 0${mode.toString(8)}). Run \`chmod go-w ${path}\``;
      expect(() => readTrustedFile(path)).toThrow(`is not trusted: others than its owner ${found}`);
    }
    folder.make('a/b');
    folder.write('a/b/keys.yaml', 'x');
    expect(readTrustedFile(folder.at('a/b/keys.yaml'))).toBe('x');
    for (const mode of [0o720, 0o702]) {
      chmodSync(folder.at(), mode);
      for (const name of [FILE, 'a/b/keys.yaml'])
        expect(() => readTrustedFile(folder.at(name))).toThrow(`can write ${folder.at()} `);
    }
  });

  it('follows a link only between folders that nobody else can write', () => {
    const [here, there] = [folder.make('here'), folder.make('there')];
    const link = folder.at('here', FILE);
    folder.write(`there/${FILE}`, 'x');
    symlinkSync(folder.at('there', FILE), link);
    expect(readTrustedFile(link)).toBe('x');
    for (const path of [here, there]) {
      chmodSync(path, 0o777);
      expect(() => readTrustedFile(link)).toThrow(`can write ${path} `);
      chmodSync(path, 0o755);
    }
  });

  const ifRoot = process.getuid?.() === 0 ? it : it.skip;
  ifRoot('refuses what belongs to someone else: a file, and a folder', () => {
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

describe('audienceOf', () => {
  const GATEWAY = 'https://gateway.example';
  const ofUrl = (baseUrl: string): string => audienceOf({ platformId: 4242, baseUrl });

  it('is what the setting says, or that of the URL, however that is spelt', () => {
    expect(audienceOf({ platformId: 1, baseUrl: GATEWAY, audience: 'production' })).toBe('production');
    for (const url of [GATEWAY, 'HTTPS://GATEWAY.Example/', `${GATEWAY}:443//`])
      expect(ofUrl(url)).toBe(`${GATEWAY}#4242`);
    const others = ['https://staging.gateway.example', `${GATEWAY}:8443`, `${GATEWAY}/v2`, 'http://localhost'];
    for (const url of others) expect(ofUrl(url)).not.toBe(`${GATEWAY}#4242`);
  });

  it('is refused where nothing says it, or it cannot be shown', () => {
    const PRINTABLE = /must be 1 to 200 printable characters/;
    for (const [source, message] of [
      [{}, /^PAYOUT_AUDIENCE: is required, or GATEWAY_BASE_URL/],
      [{ audience: 'my gateway' }, PRINTABLE],
      [{ audience: 'x'.repeat(201) }, PRINTABLE],
      [{ baseUrl: `${GATEWAY}/${'x'.repeat(200)}` }, /: is required, because GATEWAY_BASE_URL is too/],
    ] as const)
      expect(() => audienceOf({ platformId: 1, ...source })).toThrow(message);
  });
});

it('checkAudience takes this environment only, and what names none until the time of the setting', () => {
  const UNTIL = '2030-01-31T09:00:00Z';
  const clock = { now: Date.parse(UNTIL) - 1, wallNow: () => clock.now };
  const [strict, lenient] = [openAudience('production', undefined, clock), openAudience('production', UNTIL, clock)];
  expect(checkAudience('production', strict)).toBeUndefined();
  const message = expect.stringContaining('it is signed for "staging", and this is "production"');
  expect(checkAudience('staging', strict)).toEqual({ fault: 'wrong_audience', message });
  for (const other of ['Production', '']) expect(checkAudience(other, lenient)?.fault).toBe('wrong_audience');
  expect(checkAudience('\u001b[2Jproduction', strict)?.message).toContain('it is signed for another audience, and');
  expect(checkAudience(undefined, lenient)).toBeUndefined();
  expect(checkAudience(undefined, strict)?.fault).toBe('no_audience');
  clock.now += 1;
  expect(checkAudience(undefined, lenient)?.fault).toBe('no_audience');
});
