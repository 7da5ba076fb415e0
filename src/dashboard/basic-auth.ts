import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';

export interface Login {
  readonly user: string;
  readonly password: string;
}

/**
 * Requires this user and password (RFC 7617); other requests get 401.
 *
 * Hashes of both are always compared, in constant time: the response time tells nothing about how much of a guess was
 * right, or how long the password is.
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
    response.status(401).type('text').send('Sign in with the user and password of the dashboard.\n');
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** A missing or malformed header gives empty strings, which are never valid. */
function parseAuthorization(header: string | undefined): Login {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(header ?? '') ?? [];
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  return colon === -1 ? { user: '', password: '' } : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}
