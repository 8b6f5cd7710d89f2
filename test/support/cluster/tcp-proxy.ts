import { connect, createServer, type Server, type Socket } from "node:net";

/** Passes connections on to a port of loopback, which can be another one from now on: as a virtual address that moves. */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #to: number | null;
  #onSent: () => void = () => {};

  private constructor(to: number) {
    this.#to = to;
    this.#server = createServer((socket) => this.#pass(socket));
  }

  static async start(to: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(to);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Cuts all connections; new ones go there. Null: they are refused. */
  moveTo(port: number | null): void {
    this.#to = port;
    for (const socket of this.#open) socket.destroy();
  }

  /** Sets the one listener, called before each piece of what a client sends is passed on. */
  onSent(listener: () => void): void {
    this.#onSent = listener;
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
    const upstream = connect({ port: this.#to, host: "127.0.0.1", noDelay: true });
    socket.setNoDelay(true);
    socket.on("data", () => this.#onSent());
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      this.#open.add(one);
      one.pipe(other);
      one.on("error", () => {});
      one.on("close", () => {
        this.#open.delete(one);
        other.destroy();
      });
    }
  }
}
