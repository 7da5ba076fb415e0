import { expect, it } from '@jest/globals';
import { extrapolate, judgeValue } from './alerts.js';
import { Rig, untilAnswer } from './rig.js';
import { prepareKeyring, preparePolicy } from './ways/journal.js';

it('three processes that are scraped report three held payouts as three', async () => {
  const rig = await Rig.open();
  try {
    await prepareKeyring(rig);
    await preparePolicy(rig, '{ name: denied, when: { paymentId: ["1"] }, over: refuse }');
    await rig.startSender();
    for (const name of ['dashboard', 'notify'] as const) await rig.startExporter(name);
    const producer = rig.openSigningProducer();
    rig.others.push(producer);
    const addressTo = 'wallet-exporters-xxxxxxxxxxxxxxxx';
    for (const payoutId of ['P-1', 'P-2', 'P-3']) {
      await producer.enqueue({ payoutId, paymentId: 1, amount: '0.01', addressTo });
    }
    const reported = /^payouts_held\{.*kind="refuse".*\} 3$/m;
    await untilAnswer(
      'all three report three',
      async () => (await rig.scrape()).scrapes.map(({ text }) => reported.test(text)),
      (found) => found.length === 3 && found.every(Boolean),
    );
    const now = await rig.scrape();
    const series = extrapolate({ before: now, since: now, now: { ...now, at: now.at + 60 } }, 10);
    expect(await judgeValue(series, 10, 'PayoutsHeld', 3)).toBeUndefined();
    expect(await judgeValue(series, 10, 'PayoutsHeld', 9)).toContain('3');
  } finally {
    await rig.close();
  }
}, 180_000);
