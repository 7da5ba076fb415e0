import { fromUnits } from '../../decimal.js';
import { formatSpan } from './format-span.js';
import type { Cap, PolicyRule } from './policy.js';
import { formatMicros } from './usd.js';

export function describeRule(rule: PolicyRule): string {
  const { cap, hours, over } = rule;
  const about = describeCondition(rule);
  if (cap !== undefined) return `${about}: ${describeCap(cap)}, else ${describeOver(rule)}`;
  if (hours !== undefined) return `${about}: only ${hours.text}, else ${describeOver(rule)}`;
  if (over.kind === 'cool_down') return `${about}: waits until the ${formatSpan(over.ms)} are over`;
  return `${about}: ${describeOver(rule)}`;
}

function describeCondition({ when, over }: PolicyRule): string {
  const { paymentIds, isAddressNew, isAddressUnparsed, usdAbove, addressIn } = when;
  const parts = [
    paymentIds && `in currency ${[...paymentIds].join(' or ')}`,
    isAddressNew && over.kind === 'cool_down' && `to an address first seen less than ${formatSpan(over.ms)} ago`,
    isAddressUnparsed && 'to an address that cannot be read',
    addressIn !== undefined && `to an address of ${addressIn}`,
    usdAbove !== undefined && `worth more than ${formatMicros(usdAbove)} USD`,
  ].filter((part) => typeof part === 'string');
  return parts.length === 0 ? 'every payout' : `a payout ${parts.join(', ')}`;
}

function describeCap({ unit, limit, withinMs, per }: Cap): string {
  const most = unit === 'usd' ? `${formatMicros(limit)} USD` : unit === 'count' ? `${limit} sends` : fromUnits(limit);
  if (withinMs === undefined) return `at most ${most} each`;
  const apart = per === undefined ? '' : per === 'address' ? ' to one address' : ' signed with one key';
  return `at most ${most} in any ${formatSpan(withinMs)}${apart}`;
}

function describeOver({ over, cap, hours }: PolicyRule): string {
  const makesRoom = cap?.withinMs !== undefined;
  if (over.kind === 'approve') {
    const approvals = over.quorum === 1 ? '1 approval' : `${over.quorum} approvals`;
    return `it needs ${approvals} by ${over.by}${makesRoom ? ', or room' : ''}`;
  }
  const verb = over.kind === 'wait' ? 'waits' : 'is held';
  if (hours !== undefined) return `it ${verb} until then`;
  return makesRoom ? `it ${verb} until there is room` : `it ${verb} until the policy changes`;
}
