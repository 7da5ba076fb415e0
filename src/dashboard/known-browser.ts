import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Request, Response } from 'express';

const COOKIE = 'payouts_browser';
const MAX_AGE_MS = 30 * 24 * 60 * 60_000;

/**
 * Recognises browsers that signed in before, by a cookie that only this process can make. Wrong passwords from such a browser
 * are counted apart, so an operator behind the same address as an attacker, such as a proxy's, is not locked out (OWASP
 * calls these device cookies). The cookie alone opens nothing.
 */
export class KnownBrowsers {
  readonly #key = randomBytes(32);

  /** The browser's id, or undefined for one that has not signed in since this process started. */
  idOf(request: Request): string | undefined {
    const [, id = '', given = ''] =
      new RegExp(`(?:^|;\\s*)${COOKIE}=([0-9a-f]{32})\\.([0-9a-f]{64})(?:;|$)`).exec(request.headers.cookie ?? '') ??
      [];
    if (id === '' || !timingSafeEqual(Buffer.from(given, 'hex'), this.#sign(id))) return undefined;
    return id;
  }

  /** Gives the browser its cookie. */
  remember(request: Request, response: Response): void {
    const id = randomBytes(16).toString('hex');
    response.cookie(COOKIE, `${id}.${this.#sign(id).toString('hex')}`, {
      httpOnly: true,
      sameSite: 'strict',
      secure: request.secure,
      path: request.baseUrl || '/',
      maxAge: MAX_AGE_MS,
    });
  }

  #sign(id: string): Buffer {
    return createHmac('sha256', this.#key).update(id).digest();
  }
}
