import { z } from 'zod';
import { keyNameField } from '../fields.js';
import type { SettingTable } from '../setting.js';
import { flag, text } from './rules.js';

export const SECRET_SETTINGS = {
  /** Accepts secret files whatever their owner and mode. Otherwise a file is refused if every user of the machine can read it, or if others than root and the process's user can write it, as `ssh` does. The image sets it, because Kubernetes and compose mount secrets this way, and a container has no other users. */
  allowReadableSecrets: {
    section: 'account',
    variable: 'ALLOW_READABLE_SECRETS',
    rule: flag,
    default: false,
  },
} as const satisfies SettingTable;

/** Signing keys and the keyring. Private keys are files of PKCS#8 PEM from `payouts keys generate`. */
export const CONTROL_SETTINGS = {
  /** Whether `payouts enqueue`, `import` and `sign` refuse an address with a wrong checksum. Programs pass it as `checkAddresses` of `PayoutProducer`. See [import.md](import.md#addresses). */
  checkAddresses: {
    section: 'control',
    variable: 'PAYOUT_CHECK_ADDRESSES',
    rule: flag,
    default: true,
  },
  /** The private key with which `payouts enqueue`, `import` and `sign` sign payouts. Programs pass it as `signingKey` of `PayoutProducer`. Only with `PAYOUT_SIGNING_KEY_NAME`. */
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
  /** The keyring, YAML or JSON: the public keys whose signatures count. Only root and the process's user may have write access to it and its folder. With it, a worker sends only signed payouts, and commands that send again need an operator's key (`--key`, `--ssh-key`). The dashboard then shows whose signatures count, and takes approvals. Option `keysFile` of `createPayoutWorker`, `PayoutProducer` and `createDashboard`. */
  keysFile: {
    section: 'control',
    variable: 'PAYOUT_KEYS_FILE',
    rule: text,
    absent: 'nothing is verified',
  },
  /** Until this time, such as `2030-01-31T09:00:00Z`, signatures without an environment count, as versions before `PAYOUT_AUDIENCE` made them. Anyone who can write to Redis can bring one from another environment. */
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
