import type { Command } from 'commander';
import type { CliContext } from '../context/cli-context.js';
import { defineAuditExport } from './audit-export-command.js';
import { defineAuditVerify } from './audit-verify-command.js';

const HELP_AFTER = `
They read the send journal of this host (SEND_JOURNAL_DIR, GATEWAY_PLATFORM_ID), the keyring (PAYOUT_KEYS_FILE, where it is set) and
Redis, and change nothing. A worker may be running. With --offline they need no Redis.

Examples:
  payouts audit verify
  payouts audit export --since 2030-01-01 --csv > sends.csv
`;

/** Defines `payouts audit`: what the send journal of this host proves. */
export function defineAuditCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP_AFTER);
  defineAuditVerify(command, context);
  defineAuditExport(command, context);
}
