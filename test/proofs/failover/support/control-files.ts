import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBuiltProgram } from '../../../support/built-program.js';

const KEYS = [
  ['shop', 'producer'],
  ['ann', 'approver'],
  ['bob', 'approver'],
  ['op', 'operator'],
] as const;

export interface Control {
  /** For workers and commands. */
  readonly environment: Readonly<Record<string, string>>;
  readonly keyOf: (person: string) => string;
}

/** Makes keys, a keyring and a policy as an operator does. @param rules - of the policy, one `- {…}` a line */
export function makeControl(dir: string, rules: string): Control {
  mkdirSync(dir, { mode: 0o700 });
  const fileOf = (name: string): string => join(dir, `${name}.pem`);
  const entries = KEYS.map(([name, role]) => {
    const args = ['keys', 'generate', name, '--role', role, '--person', name, '--out', fileOf(name)];
    return execFileSync(process.execPath, [findBuiltProgram(), ...args], { encoding: 'utf8' });
  });
  const [keyring, policy] = [join(dir, 'keys.yaml'), join(dir, 'policy.yaml')];
  writeFileSync(keyring, `version: 1\nkeys:\n${entries.join('')}`);
  writeFileSync(
    policy,
    [
      ...['version: 1', "platformId: '1'", 'default: send', 'groups: { finance: [ann, bob] }'],
      ...['approvals: { expireAfter: 24h, requestedBy: any }', 'rules:', rules],
    ].join('\n'),
  );
  return {
    keyOf: fileOf,
    environment: {
      ...{ PAYOUT_KEYS_FILE: keyring, PAYOUT_POLICY_FILE: policy },
      ...{ PAYOUT_SIGNER: fileOf('shop'), PAYOUT_SIGNER_NAME: 'shop' },
    },
  };
}
