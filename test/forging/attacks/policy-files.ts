import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The policy in use, its list, and a text of the same account that lets everything pass. */
export type PolicyFiles = Readonly<Record<'policyFile' | 'listFile' | 'lenient', string>>;

/** An attack on the policy's file, by another user of the worker's host or by a mistake there; and part of what the worker says. */
type PolicyFileAttack = readonly [name: string, words: RegExp, attack: (files: PolicyFiles) => Promise<void>];

const NOT_TRUSTED = /is not trusted: others than its owner can write/;

/** After each, the worker reads its policy again; the former one counts, and a worker that starts refuses to. */
export const POLICY_FILE_ATTACKS: readonly PolicyFileAttack[] = [
  [
    'one that others can write',
    NOT_TRUSTED,
    async ({ policyFile, lenient }) => {
      await writeFile(policyFile, lenient);
      await chmod(policyFile, 0o666);
    },
  ],
  [
    'a link to one in a folder that others can write',
    NOT_TRUSTED,
    async ({ policyFile, lenient }) => {
      const folder = join(dirname(policyFile), 'open');
      await mkdir(folder);
      await chmod(folder, 0o777);
      await writeFile(join(folder, 'policy.yaml'), lenient, { mode: 0o600 });
      await rm(policyFile);
      await symlink(join(folder, 'policy.yaml'), policyFile);
    },
  ],
  [
    'its list of addresses, emptied where others can write it',
    NOT_TRUSTED,
    async ({ listFile }) => {
      await writeFile(listFile, '');
      await chmod(listFile, 0o666);
    },
  ],
  [
    'the policy of another account',
    /platformId/,
    async ({ policyFile, lenient }) => writeFile(policyFile, lenient.replace(/platformId: "\d+"/, 'platformId: "1"')),
  ],
];
