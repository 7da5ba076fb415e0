import type { Logger } from '../../logger.js';
import { toPlainText } from '../../plain-text.js';

/** A logger that writes warnings and errors as plain lines, for a command's stderr. */
export function createLineLogger(writeError: (text: string) => void): Logger {
  const write = (fields: object, message: string): void => {
    const { reason, error = reason } = fields as { readonly reason?: string; readonly error?: string };
    writeError(`${toPlainText(`payouts: ${message}${error === undefined ? '' : ` (${error})`}`)}\n`);
  };
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: write,
    error: write,
    child: () => logger,
  };
  return logger;
}
