import type { FastifyInstance } from 'fastify';
import { createDashboard } from 'payout-queue/dashboard';

export function addDashboard(app: FastifyInstance, redisUrl: string, password: string): void {
  const dashboard = createDashboard({ redisUrl, platformId: 4242, publicPath: '/admin', password });
  void app.register((scope, _options, done) => {
    // Leaves bodies to the dashboard.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _body, done) => done(null));
    for (const url of ['/admin', '/admin/*']) {
      scope.all(url, (request, reply) => {
        reply.hijack();
        dashboard.handler(request.raw, reply.raw);
      });
    }
    scope.addHook('onClose', () => dashboard.close());
    done();
  });
}
