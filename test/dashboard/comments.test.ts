import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { injectedIn, openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

/** What people wrote about payouts, on the pages. */

let account: SampleAccount;
let dashboard: RunningDashboard;
beforeEach(async () => {
  account = await openSampleAccount();
  dashboard = await openDashboard(account);
  await account.sendAs('lost', { kind: 'unknown', reason: 'no response' });
  await account.sendAs('paid', { kind: 'accepted', gatewayId: 'h1' });
  await account.enqueue('held');
  await account.sender.holdPayout('held', 0, HOLD);
});
afterEach(async () => {
  await dashboard.close();
  await account.close();
});

const ON_IT = { by: 'ann', text: 'I am on it' };
const NOT_SIGNED =
  'Not signed: anyone who can write to Redis can write one under any name. No comment decides anything.';

it('the page of a payout that needs a person has the command for one, and later who wrote what, and when', async () => {
  const command = `payouts comment --account ${account.platformId} lost --text &#39;I am on it&#39;`;
  expect(await dashboard.read('/payouts/lost')).toContain(`data-copy="${command}"`);
  expect(await dashboard.readText('/payouts/lost')).not.toContain(NOT_SIGNED);
  expect(await dashboard.readText('/payouts/paid')).not.toContain('Comments');
  await account.ledger.comment('lost', ON_IT);
  await account.ledger.comment('paid', { by: 'bob', text: 'asked the gateway' });
  const time = new Date(account.clock.wallNow()).toISOString().slice(0, 19).replace('T', ' ');
  expect(await dashboard.readText('/payouts/lost')).toContain(`I am on it by ann , ${time} UTC ${NOT_SIGNED}`);
  expect(await dashboard.readText('/payouts/paid')).toContain(`asked the gateway by bob , ${time} UTC ${NOT_SIGNED}`);
});

it('lists of what needs a person have a mark, the last comment and its age', async () => {
  const lists = [
    '/overview',
    '/payouts?state=unknown',
    '/held',
    '/payouts?batch=&state=held',
    '/payouts?q=lost&state=',
  ];
  for (const path of lists) expect(await dashboard.read(path)).not.toContain('Comment</th>');
  for (const payoutId of ['lost', 'held']) {
    await account.ledger.comment(payoutId, { by: 'bob', text: 'who knows?' });
    await account.ledger.comment(payoutId, ON_IT);
  }
  account.clock.advance(125_000);
  for (const path of lists.slice(0, 4)) {
    const page = await dashboard.read(path);
    expect(page).toContain('Comment</th>');
    expect(page).toMatch(/<td data-title="Comment" class="text">\s*<bdi title="ann: I am on it"><svg/);
    expect(page).not.toContain('who knows?');
    expect(await dashboard.readText(path)).toContain('ann: I am on it 2 min');
  }
  expect(await dashboard.readText('/activity')).toMatch(/ann wrote a comment 2 payouts I am on it/);
  expect(await (await dashboard.ask('/payouts.csv?state=unknown')).text()).toMatch(/,ann: I am on it\r?\n/);
});

it('hostile text is text', async () => {
  const text = `<img src=x onerror=alert(1)>"'&\u202e`;
  for (const payoutId of ['lost', 'held']) await account.ledger.comment(payoutId, { by: `<script>${text}`, text });
  for (const path of ['/overview', '/payouts/lost', '/payouts?state=unknown', '/held', '/activity']) {
    const page = await dashboard.read(path);
    expect({ path, injected: injectedIn(page)?.[0] }).toEqual({ path, injected: undefined });
    expect(page).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;');
  }
});
