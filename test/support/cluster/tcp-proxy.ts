import { connect, createServer, type Server, type Socket } from "node:net";
import { Transform, type TransformCallback } from "node:stream";

/** Passes connections on to a port, which can be another one from now on: as a virtual address that moves. */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  readonly #host: string;
  #to: number | null;
  /** Asked for each piece, before it is passed on, whether it is; one that is not is lost. */
  passes: (bytes: Buffer, from: "client" | "server") => boolean = () => true;

  private constructor(to: number, host: string) {
    this.#to = to;
    this.#host = host;
    this.#server = createServer((socket) => this.#pass(socket));
  }

  /** To a port of a host, from a port of loopback; 0: any. */
  static async start(to: number, { host = "127.0.0.1", at = 0 } = {}): Promise<TcpProxy> {
    const proxy = new TcpProxy(to, host);
    await new Promise<void>((resolve) => proxy.#server.listen(at, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Cuts all connections; new ones go there. Null: they are refused. */
  moveTo(port: number | null): void {
    this.#to = port;
    this.cut();
  }

  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.moveTo(null);
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(socket: Socket): void {
    if (this.#to === null) {
      socket.destroy();
      return;
    }
    const upstream = connect({ port: this.#to, host: this.#host, noDelay: true });
    socket.setNoDelay(true);
    for (const [one, other, from] of [
      [socket, upstream, "client"],
      [upstream, socket, "server"],
    ] as const) {
      this.#open.add(one);
      const filter = (bytes: Buffer, _: string, passed: TransformCallback) =>
        passed(null, this.passes(bytes, from) ? bytes : undefined);
      one.pipe(new Transform({ transform: filter })).pipe(other);
      one.on("error", () => {});
      one.on("close", () => {
        this.#open.delete(one);
        other.destroy();
      });
    }
  }
}
