// Nothing is sent: these are the two halves of a request that has arrived.
// oxlint-disable-next-line eslint/no-restricted-imports
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";

/** The parts of a request that we pass on to `oidc-provider`. */
export interface BridgedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty if there is none. */
  readonly body: string;
  /** The origin at which clients reach the service, even behind a proxy. */
  readonly origin: string;
}

export interface BridgedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** A node:http request and response without a connection. */
export function nodeExchange({ method, target, headers, body, origin }: BridgedRequest) {
  const { host, protocol } = new URL(origin);
  // Koa takes the scheme from the socket, and refuses secure cookies on one that is not encrypted.
  const request = new IncomingMessage(Object.assign(new Socket(), { encrypted: protocol === "https:" }));
  const bytes = Buffer.from(body);
  const length = bytes.length === 0 ? {} : { "content-length": String(bytes.length) };
  Object.assign(request, { method, url: target, headers: { ...headers, host, ...length } });
  if (bytes.length > 0) request.push(bytes);
  request.push(null);
  return { request, response: new ServerResponse(request) };
}

/** Lets a node:http handler answer a request. */
export async function answerBy(
  handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  bridged: BridgedRequest,
): Promise<BridgedResponse> {
  const { request, response } = nodeExchange(bridged);
  const chunks: Buffer[] = [];
  const ended = Promise.withResolvers<void>();
  const keep = (chunk: unknown) => {
    if (typeof chunk === "string" || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
  };
  Object.assign(response, {
    write: (chunk: unknown) => (keep(chunk), true),
    end: (chunk: unknown) => (keep(chunk), ended.resolve(), response),
  });
  await Promise.all([handler(request, response), ended.promise]);
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.getHeaders())) {
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, String(one));
  }
  return { status: response.statusCode, headers, body: Buffer.concat(chunks).toString("utf8") };
}
