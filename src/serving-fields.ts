import { isIP } from 'node:net';
import { z } from 'zod';

const PLACEHOLDER = '{txhash}';

/**
 * `payment_id=https://…/{txhash}`, separated by commas.
 * @returns the templates by payment_id
 */
export const explorersField = z.string({ error: 'must be a string' }).transform((text, context) => {
  const templates = new Map<number, string>();
  for (const entry of text.split(',').map((each) => each.trim())) {
    const [, id = '', template = ''] = /^(\d{1,9})=(.+)$/.exec(entry) ?? [];
    const problem = templates.has(Number(id)) ? 'names a payment_id twice' : explorerProblem(id, template);
    if (problem !== undefined) {
      context.issues.push({ code: 'custom', message: `${problem}: ${entry}`, input: text });
      return z.NEVER;
    }
    templates.set(Number(id), template);
  }
  return templates;
});

function explorerProblem(id: string, template: string): string | undefined {
  if (id === '') return `must be entries such as 6=https://explorer.example/tx/${PLACEHOLDER}, separated by commas`;
  if (template.split(PLACEHOLDER).length !== 2) return `must contain ${PLACEHOLDER} once in each entry`;
  const isUsable = /^https:\/\/[^/?#{}@\s]+[/?#]\S*$/.test(template) && URL.canParse(template);
  return isUsable ? undefined : `must be a URL of https://, with ${PLACEHOLDER} behind the host`;
}

const NAMED_NETWORKS = ['loopback', 'linklocal', 'uniquelocal'];

/** Addresses, networks (`10.0.0.0/8`) or Express's names of networks, separated by commas. */
export const proxiesField = z.string({ error: 'must be a string' }).transform((text, context) => {
  const proxies = text.split(',').map((each) => each.trim());
  const wrong = proxies.find((proxy) => !isNetwork(proxy));
  if (wrong === undefined) return proxies;
  const message = `must be addresses, networks such as 10.0.0.0/8, or loopback, separated by commas: ${wrong}`;
  context.issues.push({ code: 'custom', message, input: text });
  return z.NEVER;
});

function isNetwork(text: string): boolean {
  if (NAMED_NETWORKS.includes(text)) return true;
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}
