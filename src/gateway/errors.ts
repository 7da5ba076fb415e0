import { PayoutError } from '../errors.js';

/**
 * Failures of gateway queries. None has the HTTP library's error as its cause, because that contains the signed
 * request.
 */

/** The gateway responded that the call failed. */
export class GatewayRejectedError extends PayoutError {
  readonly gatewayMessage: string;

  constructor(endpoint: string, gatewayMessage: string) {
    super('GATEWAY_REJECTED', `The gateway refused /${endpoint}: ${gatewayMessage}`);
    this.gatewayMessage = gatewayMessage;
  }
}

/** No complete response came: the gateway or something before it is unreachable, slow or failing. */
export class GatewayUnavailableError extends PayoutError {
  constructor(message: string) {
    super('GATEWAY_UNAVAILABLE', message);
  }
}

/** The response is not one that the API describes. */
export class GatewayInvalidResponseError extends PayoutError {
  constructor(endpoint: string, problem: string) {
    super('GATEWAY_INVALID_RESPONSE', `The gateway's response to /${endpoint} is not as documented: ${problem}`);
  }
}

/** Describes a failure by its message or code only. An HTTP library's error contains the signed request. */
export function describeFailure(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  if (typeof message === 'string' && message !== '') return message;
  // Node's error for a host with several unreachable addresses has a code but no message.
  return typeof code === 'string' ? code : 'no reason was given';
}
