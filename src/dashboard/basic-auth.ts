import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/**
 * Lets only those pass who give this user and password (RFC 7617); everyone else gets 401.
 *
 * Hashes of both are compared, always both and in constant time, so that an answer's delay says nothing about how
 * much of a guess was right, or how long the right one is.
 */
export function requireLogin({ user, password }: Login): RequestHandler {
  const expected = { user: digest(user), password: digest(password) };
  return (request, response, next) => {
    const given = parseAuthorization(request.headers.authorization);
    const isUser = timingSafeEqual(digest(given.user), expected.user);
    const isPassword = timingSafeEqual(digest(given.password), expected.password);
    if (isUser && isPassword) {
      next();
      return;
    }
    response.set('WWW-Authenticate', 'Basic realm="payouts", charset="UTF-8"');
    response.status(401).type('text').send('Please sign in.\n');
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** What the header says; a header that is missing or malformed says nothing, which is never right. */
function parseAuthorization(header: string | undefined): Login {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(header ?? '') ?? [];
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  return colon === -1 ? { user: '', password: '' } : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}
