/** One request as a target received it. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

/** What a target does with a request: a status, a whole answer, or a promise of one. */
export type Script = number | ((received: Received, count: number) => Response | Promise<Response>);

/** A real HTTP server on loopback that answers by a script: the n-th request by its n-th entry, the last one for ever. */
export class Target implements AsyncDisposable {
  readonly received: Received[] = [];
  readonly #server: ReturnType<typeof Bun.serve>;
  readonly #script: readonly Script[];
  #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  constructor(...script: readonly Script[]) {
    this.#script = script.length === 0 ? [200] : script;
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 60,
      fetch: (request) => this.#answer(request),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/`;
  }

  /** Resolves when so many requests have arrived. */
  async saw(count: number): Promise<void> {
    if (this.received.length >= count) return;
    await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const body = await request.text();
    const received = { method: request.method, path: pathname + search, headers: request.headers, body };
    const count = this.received.push(received);
    this.#waiting = this.#waiting.filter((waiter) => {
      if (waiter.count <= count) waiter.resolve();
      return waiter.count > count;
    });
    const step = this.#script[Math.min(count, this.#script.length) - 1] ?? 200;
    return typeof step === "number" ? new Response(null, { status: step }) : step(received, count);
  }
}
