import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** An attack on the policy's file, by another user of the worker's host or by a mistake there. */
export interface PolicyFileAttack {
  readonly name: string;
  readonly attack: (files: PolicyFiles) => Promise<void>;
  /** Part of what the worker says. */
  readonly words: RegExp;
}

/** The policy in use, its list, and a text of the same account that lets everything pass. */
export type PolicyFiles = Readonly<Record<'policyFile' | 'listFile' | 'lenient', string>>;

const words = /is not trusted: others than its owner can write/;

/** A lenient policy, as a file that others can write. */
const openTo =
  (mode: number) =>
  async ({ policyFile, lenient }: PolicyFiles): Promise<void> => {
    await writeFile(policyFile, lenient);
    await chmod(policyFile, mode);
  };

/** After each, the worker reads its policy again; the former one counts, and a worker that starts refuses to. */
export const POLICY_FILE_ATTACKS: readonly PolicyFileAttack[] = [
  { name: 'one that others can write', attack: openTo(0o666), words },
  { name: 'one that the group can write', attack: openTo(0o620), words },
  {
    name: 'another in its place, in a folder that others can write',
    attack: async ({ policyFile, lenient }) => {
      await writeFile(`${policyFile}.new`, lenient, { mode: 0o600 });
      await rename(`${policyFile}.new`, policyFile);
      await chmod(dirname(policyFile), 0o777);
    },
    words,
  },
  {
    name: 'a link to one in a folder that others can write',
    attack: async ({ policyFile, lenient }) => {
      const folder = join(dirname(policyFile), 'open');
      await mkdir(folder);
      await chmod(folder, 0o777);
      await writeFile(join(folder, 'policy.yaml'), lenient, { mode: 0o600 });
      await rm(policyFile);
      await symlink(join(folder, 'policy.yaml'), policyFile);
    },
    words,
  },
  {
    name: 'its list of addresses, emptied where others can write it',
    attack: async ({ listFile }) => {
      await writeFile(listFile, '');
      await chmod(listFile, 0o666);
    },
    words,
  },
  {
    name: 'the policy of another account',
    attack: async ({ policyFile, lenient }) =>
      writeFile(policyFile, lenient.replace(/platformId: "\d+"/, 'platformId: "1"')),
    words: /platformId/,
  },
  { name: 'an empty file', attack: async ({ policyFile }) => writeFile(policyFile, ''), words: /version|must be/ },
  { name: 'none', attack: async ({ policyFile }) => rm(policyFile), words: /cannot be read/ },
];
