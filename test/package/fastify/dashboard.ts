import type { FastifyInstance } from 'fastify';
import { createDashboard } from 'payout-queue/dashboard';

export function addDashboard(app: FastifyInstance, redisUrl: string, password: string): void {
  const dashboard = createDashboard({ redisUrl, platformId: 4242, publicPath: '/admin', password });
  for (const url of ['/admin', '/admin/*']) {
    app.get(url, (request, reply) => {
      reply.hijack();
      dashboard.handler(request.raw, reply.raw);
    });
  }
  app.addHook('onClose', () => dashboard.close());
}
