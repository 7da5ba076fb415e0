import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { readTrustedFile } from '../../../src/base/trusted-file.js';
import { keyEntry, testKey } from '../support/keys.js';

const KEYRING = { version: 1, keys: [keyEntry(testKey(1)), keyEntry(testKey(2), { name: 'olga', role: 'operator' })] };
const SOMEBODY_ELSE = 12345;
const ifRoot = process.getuid?.() === 0 ? it : it.skip;
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keyring-'));
  file = join(folder, 'keys.yaml');
  write(stringify(KEYRING));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function write(content: string | Buffer): void {
  writeFileSync(file, content, { mode: 0o644 });
}

const read = (path = file): string[] => readKeyringFile(path, 'PAYOUT_KEYS_FILE').keys.map(({ name }) => name);

describe('readKeyringFile', () => {
  const yaml = stringify(KEYRING);
  it.each<[string, string | Buffer]>([
    ['YAML', yaml],
    ['JSON', JSON.stringify(KEYRING)],
    ['CRLF', yaml.replaceAll('\n', '\r\n')],
    ['a BOM', `\uFEFF${yaml}`],
    ['JSON behind a BOM', `\uFEFF${JSON.stringify(KEYRING)}`],
    ['comments', `# keys\n---\n${yaml}...\n`],
  ])('reads %s', (_, content) => {
    write(content);
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
    [
      'a problem of a key',
      JSON.stringify({ version: 1, keys: [{ ...KEYRING.keys[0], role: 'x' }] }),
      /keys\.0\.role must be one of/,
    ],
  ])('refuses %s, and names setting and file', (_, content, message) => {
    write(content);
    const started = performance.now();
    expect(() => read()).toThrow(message);
    expect(() => read()).toThrow(`PAYOUT_KEYS_FILE: ${file}`);
    expect(performance.now() - started).toBeLessThan(5000);
  });

  it('shows nothing of a private key, or of another secret, that was named in its place', () => {
    const pem = testKey(1).export({ format: 'pem', type: 'pkcs8' }).toString();
    const secret = pem.split('\n')[1] ?? '';
    for (const content of [
      pem,
      `keys: "${pem}"`,
      `keys:\n  - name: |\n      ${pem.replaceAll('\n', '\n      ')}`,
      secret,
    ]) {
      write(content);
      let message = '';
      try {
        read();
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toMatch(/holds a private key\. A keyring holds public keys only|keyring must be/);
      expect(message).not.toContain(secret.slice(0, 20));
    }
  });

  it('says what is missing', () => {
    expect(() => read(join(folder, 'none.yaml'))).toThrow(/PAYOUT_KEYS_FILE: .*none\.yaml cannot be read: ENOENT/);
    expect(() => read(join(folder, 'none', 'keys.yaml'))).toThrow(/cannot be read: ENOENT/);
    expect(() => read(folder)).toThrow(/cannot be read: EISDIR/);
  });
});

describe('readTrustedFile', () => {
  it.each([0o600, 0o644, 0o640, 0o755, 0o400])('accepts mode %#o', (mode) => {
    chmodSync(file, mode);
    expect(readTrustedFile(file)).toBe(stringify(KEYRING));
  });

  it.each([0o664, 0o646, 0o666, 0o622, 0o602])('refuses a file of mode %#o, and says what to do', (mode) => {
    chmodSync(file, mode);
    const shown = mode.toString(8).padStart(4, '0');
    expect(() => readTrustedFile(file)).toThrow(
      `is not trusted: others than its owner can write ${file} (mode ${shown}). Run \`chmod go-w ${file}\``,
    );
  });

  it.each([0o775, 0o757, 0o777])('refuses a folder of mode %#o', (mode) => {
    chmodSync(folder, mode);
    expect(() => readTrustedFile(file)).toThrow(`chmod go-w ${folder}\``);
  });

  it('accepts a folder in which only the owner of a file can replace it', () => {
    chmodSync(folder, 0o1777);
    expect(readTrustedFile(file)).toBe(stringify(KEYRING));
  });

  it('refuses a folder above in which another can be put in the place of the folder', () => {
    const deep = join(folder, 'a', 'b');
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, 'keys.yaml'), 'x');
    expect(readTrustedFile(join(deep, 'keys.yaml'))).toBe('x');
    chmodSync(folder, 0o777);
    expect(() => readTrustedFile(join(deep, 'keys.yaml'))).toThrow(`can write ${folder} `);
  });

  it('follows a link only between folders that nobody else can write', () => {
    const [here, there] = [join(folder, 'here'), join(folder, 'there')];
    for (const path of [here, there]) mkdirSync(path);
    const [link, target] = [join(here, 'keys.yaml'), join(there, 'keys.yaml')];
    writeFileSync(target, 'x');
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
    const link = join(folder, 'link');
    symlinkSync(join(folder, 'none'), link);
    expect(() => readTrustedFile(link)).toThrow(/cannot be read: ENOENT/);
    const loop = join(folder, 'loop');
    symlinkSync(loop, loop);
    expect(() => readTrustedFile(loop)).toThrow(/cannot be read: ELOOP/);
  });

  ifRoot('refuses what belongs to someone else: file, folder, folder of a link', () => {
    chownSync(file, SOMEBODY_ELSE, SOMEBODY_ELSE);
    expect(() => readTrustedFile(file)).toThrow(
      `is not trusted: ${file} belongs to user ${SOMEBODY_ELSE}. Run \`chown root ${file}\``,
    );
    chownSync(file, 0, 0);
    chownSync(folder, SOMEBODY_ELSE, SOMEBODY_ELSE);
    expect(() => readTrustedFile(file)).toThrow(`${folder} belongs to user ${SOMEBODY_ELSE}`);
    chmodSync(folder, 0o1777);
    expect(() => readTrustedFile(file)).toThrow(`${folder} belongs to user ${SOMEBODY_ELSE}`);
  });
});
