import { afterEach } from '@jest/globals';
import { type RawServerBehaviour, startRawServer } from '../../../src/gateway-contract/raw-server.js';
import { makeSelfSignedCertificate, type Certificate } from './self-signed-certificate.js';

export {
  httpResponse,
  type Peer,
  type RawServerBehaviour as RawGatewayBehaviour,
} from '../../../src/gateway-contract/raw-server.js';

export type RawGateway = Awaited<ReturnType<typeof startRawGateway>>;

export type Scheme = 'http' | 'https';

const localCertificate = makeSelfSignedCertificate();

/** The server of the contract suite, which may also speak TLS. */
export async function startRawGateway(
  scheme: Scheme,
  behaviour: RawServerBehaviour,
  certificate: Certificate = localCertificate,
) {
  const isSecure = scheme === 'https';
  const server = await startRawServer(behaviour, isSecure ? certificate : undefined);
  return Object.assign(server, { ca: isSecure ? certificate.cert : undefined });
}

const started: RawGateway[] = [];

export async function startForTest(
  scheme: Scheme,
  behaviour: RawServerBehaviour = {},
  certificate?: Certificate,
): Promise<RawGateway> {
  const server = await startRawGateway(scheme, behaviour, certificate);
  started.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(started.splice(0).map(async (server) => server.stop()));
});
