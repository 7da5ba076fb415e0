import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export const ACME_SECRET = 'acme-secret-0123456789';

interface AcmePayment {
  readonly id: string;
  readonly coin: number;
  readonly amount: string;
  readonly to: string;
  readonly arrivedAtMs: number;
  state: 'waiting' | 'done';
}

/** The invented API of examples/own-gateway.ts: each payment is done when it is asked for the second time. */
export async function startAcme() {
  const payments = new Map<string, AcmePayment>();
  const server = createServer((request, response) => {
    void answer(request).then(({ status, body }) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });

  async function answer(request: IncomingMessage): Promise<{ status: number; body: object }> {
    const arrivedAtMs = performance.now();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { method, url = '' } = request;
    const signed = createHmac('sha256', ACME_SECRET)
      .update(method === 'POST' ? text : url)
      .digest('hex');
    if (request.headers['x-acme-signature'] !== signed) return { status: 401, body: { error: 'wrong signature' } };
    if (method === 'POST') {
      const { coin, amount, to } = JSON.parse(text) as Pick<AcmePayment, 'coin' | 'amount' | 'to'>;
      if (to === 'nowhere') return { status: 422, body: { error: 'address is not one' } };
      const id = `acme-${payments.size + 1}`;
      payments.set(id, { id, coin, amount, to, arrivedAtMs, state: 'waiting' });
      return { status: 201, body: { id } };
    }
    if (url === '/coins') return { status: 200, body: { coins: [{ id: 6, name: 'USDT', usd: '1' }] } };
    if (url === '/funds') return { status: 200, body: { funds: [{ coin: 6, amount: '100' }] } };
    const payment = payments.get(url.slice('/payments/'.length));
    if (payment === undefined) return { status: 404, body: { error: 'no such payment' } };
    const { coin, amount, to, state } = payment;
    payment.state = 'done';
    return { status: 200, body: { coin, amount, to, state, ...(state === 'done' && { hash: `0x${payment.id}` }) } };
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    payments: () => [...payments.values()],
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
