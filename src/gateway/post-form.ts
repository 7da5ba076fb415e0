import type { Agent } from 'node:http';
import axios from 'axios';
import { MAX_RESPONSE_BYTES, type RawResponse } from './response.js';
import { describeFailure } from './errors.js';

// A separate instance, so that an application's interceptors and defaults for axios do not apply.
const http = axios.create();

/**
 * Posts a signed form once and returns the complete response as bytes.
 *
 * No redirects (a 307 would post again), no proxies from the environment. axios neither decompresses nor parses,
 * because it accepts cut-off gzip and broken text.
 * @throws Error without any content of the request, if no complete response came
 */
export async function postForm(url: string, body: string, agent: Agent, signal?: AbortSignal): Promise<RawResponse> {
  try {
    const response = await http.request<Buffer>({
      method: 'POST',
      url,
      data: body,
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        Accept: 'application/json',
        'Accept-Encoding': 'gzip',
        'User-Agent': 'payout-queue',
      },
      adapter: 'http',
      httpAgent: agent,
      httpsAgent: agent,
      maxRedirects: 0,
      proxy: false,
      timeout: 0,
      responseType: 'arraybuffer',
      decompress: false,
      maxContentLength: MAX_RESPONSE_BYTES,
      transformRequest: [],
      validateStatus: () => true,
      ...(signal === undefined ? {} : { signal }),
    });
    return {
      status: response.status,
      contentEncoding: String(response.headers['content-encoding'] ?? ''),
      body: response.data,
    };
  } catch (error) {
    // Not as the cause: axios's error contains the request.
    throw new Error(describeFailure(error));
  }
}
