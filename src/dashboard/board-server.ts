import type { AppViewRoute, ControllerHandlerReturnType } from '@bull-board/api/typings/app';
import { ExpressAdapter } from '@bull-board/express';
import type { Router } from 'express';
import { RedisUnavailableError } from '../errors.js';
import { toRedisError } from '../redis.js';

/** Bull Board's Express adapter, for any mount path, without content from other hosts, and with 503 while Redis is unavailable. */
export class BoardServer extends ExpressAdapter {
  constructor() {
    super();
    this.app.disable('x-powered-by');
  }

  /** The page that starts the application. The mount path is known only from the request. */
  override setEntryRoute(entry: AppViewRoute): this {
    this.app.get(entry.route, (request, response, next) => {
      const { name, params } = entry.handler({ basePath: request.baseUrl, uiConfig: this.uiConfig });
      response.render(name, params, (error: Error | null, page?: string) => {
        if (page === undefined) next(error);
        else response.send(withLinkToPayouts(withoutOtherHosts(page)));
      });
    });
    return this;
  }

  /** An unavailable Redis is not an error of the server: the client may retry. */
  override setErrorHandler(handler: (error: Error) => ControllerHandlerReturnType): this {
    return super.setErrorHandler((error) => {
      const known = toRedisError(error);
      if (!(known instanceof RedisUnavailableError)) return handler(error);
      // Bull Board's type lists only the codes that it sends itself.
      return { status: 503 as 500, body: { error: known.message, message: known.message } };
    });
  }

  override getRouter(): Router {
    return super.getRouter() as Router;
  }
}

const LINK_STYLE =
  'position:fixed;right:16px;bottom:16px;z-index:10;padding:8px 16px;border-radius:999px;background:#4338ca;color:#fff;' +
  'font:500 14px system-ui,sans-serif;text-decoration:none;box-shadow:0 2px 8px rgb(0 0 0 / 25%)';

/** Bull Board has a place for such links, but hides it in a menu. */
function withLinkToPayouts(page: string): string {
  return page.replace('</body>', `<a href="../payouts" style="${LINK_STYLE}">To the payouts</a></body>`);
}

/** Our headers would block the page's links to a font service; system fonts replace them. */
function withoutOtherHosts(page: string): string {
  return page.replace(/<link\s[^>]*href="(?:https?:)?\/\/[^>]*>/g, '');
}
