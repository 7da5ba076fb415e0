import { PayoutError } from '../errors.js';

/**
 * What can come of a call that only reads. None of these carries the HTTP library's error as its cause: that one holds
 * the request, and with it the signature.
 */

/** The gateway answered that the call failed. */
export class GatewayRejectedError extends PayoutError {
  /** The gateway's own words. */
  readonly gatewayMessage: string;

  constructor(endpoint: string, gatewayMessage: string) {
    super('GATEWAY_REJECTED', `The gateway refused /${endpoint}: ${gatewayMessage}`);
    this.gatewayMessage = gatewayMessage;
  }
}

/** No whole answer of the gateway came: it cannot be reached, is too slow, or something before it is in trouble. */
export class GatewayUnavailableError extends PayoutError {
  constructor(message: string) {
    super('GATEWAY_UNAVAILABLE', message);
  }
}

/** The gateway answered something that the API document does not describe. */
export class GatewayInvalidResponseError extends PayoutError {
  constructor(endpoint: string, problem: string) {
    super('GATEWAY_INVALID_RESPONSE', `The gateway's answer to /${endpoint} is not as documented: ${problem}`);
  }
}
