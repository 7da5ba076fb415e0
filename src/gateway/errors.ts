import { PayoutError } from '../errors.js';

/**
 * How a query of the gateway can fail. None of these has the HTTP library's error as its cause: that one contains the
 * request, and with it the signature.
 */

/** The gateway responded that the call failed. */
export class GatewayRejectedError extends PayoutError {
  /** The gateway's own words. */
  readonly gatewayMessage: string;

  constructor(endpoint: string, gatewayMessage: string) {
    super('GATEWAY_REJECTED', `The gateway refused /${endpoint}: ${gatewayMessage}`);
    this.gatewayMessage = gatewayMessage;
  }
}

/** No complete response came: the gateway cannot be reached, is too slow, or something before it is in trouble. */
export class GatewayUnavailableError extends PayoutError {
  constructor(message: string) {
    super('GATEWAY_UNAVAILABLE', message);
  }
}

/** The gateway sent a response that its API does not describe. */
export class GatewayInvalidResponseError extends PayoutError {
  constructor(endpoint: string, problem: string) {
    super('GATEWAY_INVALID_RESPONSE', `The gateway's response to /${endpoint} is not as documented: ${problem}`);
  }
}

/**
 * A failure in a few words, taken from the error's own message or code and nothing else: an error of the HTTP library
 * contains the whole request, and with it the signature.
 */
export function describeFailure(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  if (typeof message === 'string' && message !== '') return message;
  // Node's error for a host with several addresses, none of which responds, has a code but no message.
  return typeof code === 'string' ? code : 'no reason was given';
}
