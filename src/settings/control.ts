import { z } from 'zod';
import { keyNameField } from '../fields.js';
import type { SettingTable } from '../setting.js';
import { flag, text } from './rules.js';

/** How the files of secrets are read, whichever command reads them. */
export const SECRET_SETTINGS = {
  /**
   * Accepts secret files whatever their owner and mode. Else those are refused that every user of the machine can read, and
   * those that others than root and the process's user can write, as `ssh` refuses such a key. The image sets it, because
   * Kubernetes and compose mount secrets like this and a container has no other users.
   */
  allowReadableSecrets: {
    section: 'account',
    variable: 'ALLOW_READABLE_SECRETS',
    rule: flag,
    default: false,
  },
} as const satisfies SettingTable;

/** Keys: who signs what, and whose signatures count. Private keys are files of PKCS#8 PEM, made by `payouts keygen`. */
export const CONTROL_SETTINGS = {
  /**
   * Whether `payouts enqueue`, `import` and `sign` refuse an address whose checksum is wrong. Programs pass it as
   * `checkAddresses` of `PayoutProducer`. See [import.md](import.md#addresses).
   */
  checkAddresses: {
    section: 'control',
    variable: 'PAYOUT_CHECK_ADDRESSES',
    rule: flag,
    default: true,
  },
  /**
   * The private key with which `payouts enqueue`, `import` and `sign` sign payouts. Programs pass it as `signingKey` of
   * `PayoutProducer`. Only with `PAYOUT_SIGNING_KEY_NAME`.
   */
  signingKeyFile: {
    section: 'control',
    variable: 'PAYOUT_SIGNING_KEY_FILE',
    rule: text,
    absent: 'payouts are not signed',
  },
  /** The name of that key in the keyring. Only with `PAYOUT_SIGNING_KEY_FILE`. */
  signingKeyName: {
    section: 'control',
    variable: 'PAYOUT_SIGNING_KEY_NAME',
    rule: keyNameField,
    absent: 'payouts are not signed',
  },
  /**
   * The keyring, YAML or JSON: the public keys of those whose signatures count. Only root and the user of the process may be
   * able to write it, and its folder. With it a worker sends nothing that is not signed, the commands that send again ask for
   * the key of an operator (`--key`, `--ssh-key`), and the dashboard says whose signatures count and takes approvals. Option `keysFile` of `createPayoutWorker`,
   * `PayoutProducer` and `createDashboard`.
   */
  keysFile: {
    section: 'control',
    variable: 'PAYOUT_KEYS_FILE',
    rule: text,
    absent: 'nothing is verified',
  },
  /**
   * Until this time, such as `2030-01-31T09:00:00Z`, signatures count that name no environment, as versions before
   * `PAYOUT_AUDIENCE` made them. They say nothing of the environment: somebody who can write to Redis can bring one from another.
   */
  acceptUnboundUntil: {
    section: 'control',
    variable: 'PAYOUT_ACCEPT_UNBOUND_UNTIL',
    rule: z.iso.datetime({ offset: true, error: 'must be a time such as 2030-01-31T09:00:00Z' }),
    absent: 'they never count',
  },
  /** The private key with which the worker signs final states. Programs pass it as `receiptKey` of `createPayoutWorker`. Only with `PAYOUT_WORKER_KEY_NAME`. */
  workerKeyFile: {
    section: 'control',
    variable: 'PAYOUT_WORKER_KEY_FILE',
    rule: text,
    absent: 'final states are not signed',
  },
  /** The name of that key in the keyring. Only with `PAYOUT_WORKER_KEY_FILE`. */
  workerKeyName: {
    section: 'control',
    variable: 'PAYOUT_WORKER_KEY_NAME',
    rule: keyNameField,
    absent: 'final states are not signed',
  },
} as const satisfies SettingTable;
