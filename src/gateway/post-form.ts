import type { Agent } from 'node:http';
import axios from 'axios';
import { MAX_ANSWER_BYTES, type RawAnswer } from './response.js';
import { describeFailure } from './describe-failure.js';

// An instance of its own: interceptors and defaults that an application sets on the global axios do not reach it.
const http = axios.create();

/**
 * Posts a signed form, once, and returns the whole answer as bytes.
 *
 * No redirects (a 307 would be posted again), no proxies out of the environment, no decompression and no parsing by
 * axios, which takes cut-off gzip and broken text for whole.
 * @param agent - where the connection comes from
 * @param signal - gives up when aborted
 * @throws Error when no whole answer came; it holds nothing of the request
 */
export async function postForm(url: string, body: string, agent: Agent, signal?: AbortSignal): Promise<RawAnswer> {
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
      maxContentLength: MAX_ANSWER_BYTES,
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
    // Not as the cause: axios's error holds the request.
    throw new Error(describeFailure(error));
  }
}
