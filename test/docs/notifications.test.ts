import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { formatRequest } from '../../src/notifications/post-request.js';
import { parseEventNames, type Notification } from '../../src/notifications/notification.js';

const page = readFileSync(new URL('../../docs/notifications.md', import.meta.url), 'utf8');

function block(language: string): string {
  const [, text] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page) ?? [];
  if (text === undefined) throw new Error(`docs/notifications.md has no block of ${language}`);
  return text;
}

const SECRET = 'hunter2-0123456789';
const NOW = 1_900_000_000;
const example = JSON.parse(block('json')) as Notification;
const { headers, body } = formatRequest({ url: 'https://x.example', format: 'json', secret: SECRET }, example, NOW);
const signature = headers['payouts-signature'] ?? '';

/** What is genuine, and what is not: body, header, secret, now. */
const CASES: readonly (readonly [boolean, string, string, string, number])[] = [
  [true, body, signature, SECRET, NOW],
  [true, body, signature, SECRET, NOW + 300],
  [false, body, signature, SECRET, NOW + 301],
  [false, body, signature, SECRET, NOW - 301],
  [false, `${body} `, signature, SECRET, NOW],
  [false, body, signature, 'another-secret', NOW],
  [false, body, signature.replace(`t=${NOW}`, `t=${NOW + 1}`), SECRET, NOW],
  [false, body, signature.slice(0, -1), SECRET, NOW],
  [false, body, '', SECRET, NOW],
  [false, body, `${signature}\n`, SECRET, NOW],
];

const LANGUAGES = [
  {
    language: 'ts',
    file: 'verify.mts',
    command: [process.execPath, '--import', 'tsx'],
    call: `import { readFileSync } from 'node:fs';
const cases: [string, string, string, number][] = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(cases.map(([body, header, secret, now]) => isGenuine(body, header, secret, now))));`,
  },
  {
    language: 'python',
    file: 'verify.py',
    command: ['python3'],
    call: `import json, sys
print(json.dumps([is_genuine(b.encode(), h, s.encode(), n) for b, h, s, n in json.load(sys.stdin)]))`,
  },
  {
    language: 'php',
    file: 'verify.php',
    command: ['php'],
    call: `echo json_encode(array_map(fn($c) => is_genuine($c[0], $c[1], $c[2], $c[3]), json_decode(file_get_contents('php://stdin'))));`,
  },
];

for (const { language, file, command, call } of LANGUAGES) {
  const [program = '', ...args] = command;
  const isInstalled = spawnSync(program, ['--version']).status === 0;

  (isInstalled ? it : it.skip)(
    `the example in ${language} accepts what is genuine and recent, and nothing else`,
    async () => {
      const dir = await mkdtemp(join(tmpdir(), 'payouts-verify-'));
      const path = join(dir, file);
      await writeFile(path, `${block(language)}\n${call}\n`);
      const input = JSON.stringify(CASES.map(([, ...each]) => each));
      const { status, stdout, stderr } = spawnSync(program, [...args, path], { input, encoding: 'utf8' });
      await rm(dir, { recursive: true });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(JSON.parse(stdout)).toEqual(CASES.map(([isGenuine]) => isGenuine));
    },
  );
}

it('names events and headers that exist', () => {
  expect(Object.keys(headers).sort()).toEqual(
    expect.arrayContaining([...page.matchAll(/^\| `(payouts-[a-z-]+)`/gm)].map(([, name]) => name)),
  );
  const [, named = ''] = /`NOTIFY_EVENTS` chooses: (.*?)The default/s.exec(page) ?? [];
  const names = [...named.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(7);
  expect(() => parseEventNames(names.join(','))).not.toThrow();
});
