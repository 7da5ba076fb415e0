import { pathToFileURL } from 'node:url';
import { InvalidConfigError } from '../../base/errors.js';
import { checkTrustedProgram } from '../../base/trusted-file.js';
import type { OwnGateway } from '../../gateway/gateway.js';
import { findFaults } from '../../gateway/open-gateway.js';

/**
 * Loads the module of an own gateway, whose default export is the object. Its code decides where money goes, so the file
 * is trusted only as the keyring is: nobody else may write it, or a folder above it. It is not asked for what it imports.
 * @param path - absolute
 * @param field - names the setting in errors
 * @throws InvalidConfigError
 */
export async function loadGateway(path: string, field: string): Promise<OwnGateway> {
  const refuse = (message: string) => new InvalidConfigError([{ field, message }]);
  try {
    checkTrustedProgram(path);
  } catch (error) {
    throw refuse(`${path} ${(error as Error).message}`);
  }
  let module: { readonly default?: unknown };
  try {
    module = (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
  } catch (error) {
    throw refuse(`${path} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
  }
  const faults = findFaults(module.default);
  if (faults.length > 0)
    throw new InvalidConfigError(
      faults.map((message) => ({ field, message: `default export of ${path}: ${message}` })),
    );
  return module.default as OwnGateway;
}
