import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";

/** What a target does with a connection once a whole request has come; the text is that request. */
export type Behaviour = (socket: Socket, request: string) => void;

export interface RawTargetOptions {
  /** Runs at once when a connection comes; then no request is waited for. */
  readonly onConnect?: (socket: Socket) => void;
  /** Runs at once when a connection comes, besides what is done with its requests. */
  readonly onConnection?: (socket: Socket) => void;
  readonly tls?: TlsOptions;
  readonly address?: string;
  readonly port?: number;
}

/** A server on a bare socket, so that it can answer what no HTTP library would. */
export class RawTarget implements AsyncDisposable {
  /** Each request as it came, head and body. */
  readonly requests: string[] = [];
  /** Bytes that came and were no whole request. */
  stray = "";
  /** Connections that carried a byte; with TLS, handshakes that were finished. */
  connections = 0;
  /** Every connection, also one that was only made to see whether it comes about. */
  accepted = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  readonly #options: RawTargetOptions;
  readonly #behaviour: Behaviour;

  constructor(behaviour: Behaviour, options: RawTargetOptions) {
    this.#behaviour = behaviour;
    this.#options = options;
    this.#server = options.tls === undefined ? createServer() : createTlsServer(options.tls);
    this.#server.on("connection", () => (this.accepted += 1));
    this.#server.on(options.tls === undefined ? "connection" : "secureConnection", (socket: Socket) =>
      this.#take(socket),
    );
    this.#server.on("tlsClientError", () => {});
  }

  async start(): Promise<this> {
    this.#server.listen(this.#options.port ?? 0, this.#options.address ?? "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("The target does not listen.");
    return address.port;
  }

  /** The target's URL; another host name may stand in it. */
  url(path = "/", host = "127.0.0.1"): string {
    return `${this.#options.tls === undefined ? "http" : "https"}://${host}:${this.port}${path}`;
  }

  /** Resolves when the other side has let go of every connection; what waits for it has a bound of its own. */
  async abandoned(): Promise<void> {
    // Not `once` of node:events: it rejects where the client left by RST.
    await Promise.all([...this.#open].map((socket) => new Promise((resolve) => socket.once("close", resolve))));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take(socket: Socket): void {
    if (this.#options.tls === undefined) socket.once("data", () => (this.connections += 1));
    else this.connections += 1;
    this.#open.add(socket);
    socket.on("close", () => this.#open.delete(socket));
    // A client that goes away while we write is the point of many tests.
    socket.on("error", () => {});
    this.#options.onConnection?.(socket);
    if (this.#options.onConnect === undefined) this.#listen(socket);
    else this.#options.onConnect(socket);
  }

  #listen(socket: Socket): void {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      this.stray = text;
      const length = wholeLength(text);
      if (length === null) return;
      const request = text.slice(0, length);
      text = text.slice(length);
      this.stray = text;
      this.requests.push(request);
      this.#behaviour(socket, request);
    });
  }
}

/** Starts a target that does this with every request. */
export function openRawTarget(behaviour: Behaviour, options: RawTargetOptions = {}): Promise<RawTarget> {
  return new RawTarget(behaviour, options).start();
}

/** The length of the first whole request in the text; null while some of it is missing. */
function wholeLength(text: string): number | null {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return null;
  const body = /^content-length: *(\d+)/im.exec(text.slice(0, head))?.[1] ?? "0";
  const length = head + 4 + Number(body);
  return text.length < length ? null : length;
}

/** Text or bytes, then the end of the connection. */
export function says(answer: string | Uint8Array): Behaviour {
  return (socket) => socket.end(answer);
}

/** An ordinary answer: status, headers, body with its length; then the end of the connection. */
export function answers(status: number, body: string | Uint8Array = "", headers: readonly string[] = []): Behaviour {
  return says(answerBytes(status, body, headers));
}

/** The same, after which the connection stays open. */
export function answersOn(status: number, body: string | Uint8Array = "", headers: readonly string[] = []): Behaviour {
  return (socket) => socket.write(answerBytes(status, body, headers));
}

/** The bytes of such an answer. */
export function answerBytes(status: number, body: string | Uint8Array, headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body);
  const head = [`HTTP/1.1 ${status} X`, ...headers, `Content-Length: ${bytes.length}`, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), bytes]);
}

/** Says the text and then nothing more, the connection left open. */
export function saysAndHangs(text: string): Behaviour {
  return (socket) => socket.write(text);
}

/** Says the text, then one more byte every 20 ms for ever. */
export function drips(text: string, drop: string): Behaviour {
  return (socket) => {
    socket.write(text);
    const timer = setInterval(() => socket.write(drop), 20);
    socket.on("close", () => clearInterval(timer));
  };
}

/** Says the text, then the same bytes without end, as fast as they are taken. */
export function floods(text: string, wave: string | Uint8Array): Behaviour {
  return (socket) => {
    socket.write(text);
    const pour = () => {
      while (!socket.destroyed && socket.write(wave));
    };
    socket.on("drain", pour);
    pour();
  };
}

/** Says the text and then breaks the connection by RST, once it was read: a reset throws away what was not. */
export function resets(text = ""): Behaviour {
  return (socket) => {
    if (text === "") socket.resetAndDestroy();
    else socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 200));
  };
}
