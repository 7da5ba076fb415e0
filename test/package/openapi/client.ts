import { enqueue, get, list, type Problem } from './generated/index.js';

/** What a generated client knows about the fields: it only has to compile. */
export async function payOnce(payoutId: string) {
  const body = { payoutId, paymentId: 6, amount: '12.5', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
  const { error } = await enqueue({ body });
  const code: Problem['code'] | undefined = error?.code;
  if (code === 'REDIS_UNAVAILABLE') return 'ask again';
  await list({ query: { state: 'queued', limit: 10 } });
  const { data } = await get({ path: { payoutId } });
  return data?.state;
}
