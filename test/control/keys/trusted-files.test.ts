import { chmodSync, chownSync, symlinkSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { audienceOf } from '../../../src/base/settings.js';
import { InvalidConfigError } from '../../../src/base/errors.js';
import { readTrustedFile } from '../../../src/base/trusted-file.js';
import { checkAudience, openAudience } from '../../../src/control/keys/audience.js';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { messageOf, useFolder } from '../support/folder.js';
import { keyEntry, testKey } from '../support/keys.js';

/** What a process trusts: a file that nobody else can write, a keyring, one environment. */

const folder = useFolder();
const FILE = 'keys.yaml';

describe('readKeyringFile', () => {
  const keyring = {
    version: 1,
    keys: [keyEntry(testKey(1)), keyEntry(testKey(2), { name: 'olga', role: 'operator' })],
  };
  const [yaml, json] = [stringify(keyring), JSON.stringify(keyring)];
  const read = (name = FILE): string[] =>
    readKeyringFile(folder.at(name), 'PAYOUT_KEYS_FILE').keys.map((key) => key.name);

  it.each([
    ['YAML', yaml],
    ['JSON', json],
    ['CRLF', yaml.replaceAll('\n', '\r\n')],
    ['a BOM', `\uFEFF${yaml}`],
    ['JSON behind a BOM', `\uFEFF${json}`],
    ['comments', `# keys\n---\n${yaml}...\n`],
  ])('reads %s', (_, content) => {
    folder.write(FILE, content);
    expect(read()).toEqual(['shop', 'olga']);
  });

  const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
    .concat(Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`))
    .join('\n');
  it.each<[string, string | Buffer, RegExp]>([
    ['an empty file', '', /keyring must be "version: 1"/],
    ['a comment only', '# none yet\n', /keyring must be "version: 1"/],
    ['no YAML', 'keys: [', /is no YAML: /],
    ['a tab', 'version: 1\nkeys:\n\t- name: a', /is no YAML: /],
    ['two documents', `${yaml}---\n${yaml}`, /is no YAML: /],
    ['a field twice', `version: 1\n${yaml}`, /is no YAML: Map keys must be unique/],
    ['anchors that explode', bomb, /Excessive alias count/],
    ['binary data', Buffer.from([0, 1, 2, 255, 254]), /keys\.yaml/],
    ['a problem of a key', json.replace('operator', 'x'), /keys\.1\.role must be one of/],
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
  });

  it('says what is missing', () => {
    expect(() => read('none.yaml')).toThrow(/PAYOUT_KEYS_FILE: .*none\.yaml cannot be read: ENOENT/);
    expect(() => read('.')).toThrow(/cannot be read: EISDIR/);
  });
});

describe('readTrustedFile', () => {
  const CONTENT = 'version: 1\n';
  const file = (): string => {
    folder.write(FILE, CONTENT);
    return folder.at(FILE);
  };

  it.each([0o600, 0o644, 0o640, 0o755, 0o400])('accepts mode %#o', (mode) => {
    chmodSync(file(), mode);
    expect(readTrustedFile(folder.at(FILE))).toBe(CONTENT);
  });

  it.each([0o664, 0o646, 0o666, 0o622, 0o602])('refuses a file of mode %#o, and says what to do', (mode) => {
    const path = file();
    chmodSync(path, mode);
    const shown = mode.toString(8).padStart(4, '0');
    expect(() => readTrustedFile(path)).toThrow(
      `is not trusted: others than its owner can write ${path} (mode ${shown}). Run \`chmod go-w ${path}\``,
    );
  });

  it.each([0o775, 0o757, 0o777])('refuses a folder of mode %#o', (mode) => {
    const path = file();
    chmodSync(folder.at(), mode);
    expect(() => readTrustedFile(path)).toThrow(`chmod go-w ${folder.at()}\``);
  });

  it('accepts a folder in which only the owner of a file can replace it', () => {
    const path = file();
    chmodSync(folder.at(), 0o1777);
    expect(readTrustedFile(path)).toBe(CONTENT);
  });

  it('refuses a folder above in which another can be put in the place of the folder', () => {
    folder.make('a/b');
    folder.write('a/b/keys.yaml', 'x');
    expect(readTrustedFile(folder.at('a/b/keys.yaml'))).toBe('x');
    chmodSync(folder.at(), 0o777);
    expect(() => readTrustedFile(folder.at('a/b/keys.yaml'))).toThrow(`can write ${folder.at()} `);
  });

  it('follows a link only between folders that nobody else can write', () => {
    const [here, there] = [folder.make('here'), folder.make('there')];
    const [link, target] = [folder.at('here', FILE), folder.at('there', FILE)];
    folder.write(`there/${FILE}`, 'x');
    symlinkSync(target, link);
    expect(readTrustedFile(link)).toBe('x');
    for (const path of [here, there]) {
      chmodSync(path, 0o777);
      expect(() => readTrustedFile(link)).toThrow(`can write ${path} `);
      chmodSync(path, 0o755);
    }
    chmodSync(target, 0o666);
    expect(() => readTrustedFile(link)).toThrow(`can write ${target} `);
  });

  it('refuses a link to nothing, and one to itself', () => {
    symlinkSync(folder.at('none'), folder.at('link'));
    expect(() => readTrustedFile(folder.at('link'))).toThrow(/cannot be read: ENOENT/);
    symlinkSync(folder.at('loop'), folder.at('loop'));
    expect(() => readTrustedFile(folder.at('loop'))).toThrow(/cannot be read: ELOOP/);
  });

  const ifRoot = process.getuid?.() === 0 ? it : it.skip;
  ifRoot('refuses what belongs to someone else: file, folder, folder of a link', () => {
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

  it.each(['', '/', ':443', ':443//'])('is the same however the URL is spelt: %s', (end) => {
    for (const url of [GATEWAY, 'HTTPS://GATEWAY.Example']) expect(ofUrl(url + end)).toBe(`${GATEWAY}#4242`);
  });

  it('is another one with another host, port or path, without TLS, and for another account', () => {
    const urls = ['https://staging.gateway.example', `${GATEWAY}:8443`, `${GATEWAY}/v2`, 'http://localhost'];
    for (const url of urls) expect(ofUrl(url)).not.toBe(`${GATEWAY}#4242`);
    expect(audienceOf({ platformId: 4243, baseUrl: GATEWAY })).toBe(`${GATEWAY}#4243`);
  });

  it('is what the setting says', () => {
    expect(audienceOf({ platformId: 1, baseUrl: GATEWAY, audience: 'production' })).toBe('production');
  });

  const PRINTABLE = /must be 1 to 200 printable characters/;
  it.each([
    ['nothing says it', {}, /^PAYOUT_AUDIENCE: is required, or GATEWAY_BASE_URL/],
    ['it is empty', { audience: '' }, /^PAYOUT_AUDIENCE: is not valid: it must be 1 to 200/],
    ['it has spaces', { audience: 'my gateway' }, /\(got "my gateway"\)$/],
    ['it is not ASCII', { audience: 'pröd' }, PRINTABLE],
    ['it is too long', { audience: 'x'.repeat(201) }, PRINTABLE],
    [
      'the URL is too long',
      { baseUrl: `${GATEWAY}/${'x'.repeat(200)}` },
      /: is required, because GATEWAY_BASE_URL is too/,
    ],
  ])('is refused where %s', (_, source, message) => {
    const read = (): string => audienceOf({ platformId: 1, ...source });
    expect(read).toThrow(InvalidConfigError);
    expect(read).toThrow(message);
  });
});

describe('checkAudience', () => {
  const clock = { now: 0, wallNow: () => clock.now };
  const UNTIL = '2030-01-31T09:00:00Z';
  const strict = openAudience('production', undefined, clock);
  const lenient = openAudience('production', UNTIL, clock);

  it('takes this environment only, and names both', () => {
    expect(checkAudience('production', strict)).toBeUndefined();
    const message = expect.stringContaining('it is signed for "staging", and this is "production"');
    expect(checkAudience('staging', strict)).toEqual({ fault: 'wrong_audience', message });
    for (const other of ['Production', '']) expect(checkAudience(other, lenient)?.fault).toBe('wrong_audience');
    const escape = checkAudience('\u001b[2Jproduction', strict);
    expect(escape?.message).toContain('it is signed for another audience, and');
  });

  it('takes what names none until the time of the setting, and never without it', () => {
    clock.now = Date.parse(UNTIL) - 1;
    expect(checkAudience(undefined, lenient)).toBeUndefined();
    expect(checkAudience(undefined, strict)?.fault).toBe('no_audience');
    clock.now += 1;
    expect(checkAudience(undefined, lenient)?.message).toMatch(/PAYOUT_ACCEPT_UNBOUND_UNTIL/);
  });
});
