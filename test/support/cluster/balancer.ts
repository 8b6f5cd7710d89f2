/** How long a node may take for an answer: as the time-out of a real load balancer, above the longest deadline of a call. */
const ANSWER_MS_MAX = 15_000;
const CHECK_EACH_MS = 500;
const CHECK_MS_MAX = 1_000;

/**
 * Passes each request to the next node, whoever sent it and whatever it was about: nothing may depend on which node it is.
 * A node that can't be reached is answered for with 502, one that says nothing with 504; nothing is tried again. A node that
 * does not say that it is ready gets nothing until it does.
 */
export class Balancer implements AsyncDisposable {
  readonly #server: ReturnType<typeof Bun.serve>;
  readonly #nodes: readonly { readonly url: string }[];
  readonly #out = new Set<string>();
  readonly #checks: NodeJS.Timeout;
  #next = 0;

  constructor(nodes: readonly { readonly url: string }[]) {
    this.#nodes = nodes;
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 120,
      fetch: (request) => this.#pass(request),
    });
    this.#checks = setInterval(() => {
      for (const node of nodes) void this.#check(node.url).catch(() => {});
    }, CHECK_EACH_MS);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#checks);
    await this.#server.stop(true);
  }

  /** The address of the node whose turn it is; of any, when none is ready. */
  #turn(): string {
    for (let tries = 0; ; tries += 1) {
      this.#next = (this.#next + 1) % this.#nodes.length;
      const url = this.#nodes[this.#next]?.url ?? "";
      if (!this.#out.has(url) || tries >= this.#nodes.length) return url;
    }
  }

  async #check(url: string): Promise<void> {
    const answer = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(CHECK_MS_MAX) }).catch(() => null);
    if (answer?.status === 200) this.#out.delete(url);
    else this.#out.add(url);
  }

  async #pass(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.delete("host");
    const body = request.method === "GET" || request.method === "HEAD" ? null : await request.arrayBuffer();
    try {
      const answer = await fetch(this.#turn() + pathname + search, {
        method: request.method,
        headers,
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream") === true;
      // Whole before it is passed on, so that one that breaks off is answered for.
      const content = isStream ? untilItEnds(answer.body) : await answer.arrayBuffer();
      return new Response(content, { status: answer.status, headers: answer.headers });
    } catch (error) {
      const isLate = error instanceof Error && error.name === "TimeoutError";
      return new Response(null, { status: isLate ? 504 : 502 });
    }
  }
}

/** The same stream, ended where the other breaks off. */
function untilItEnds(body: ReadableStream<Uint8Array> | null): ReadableStream<Uint8Array> {
  const reader = body?.getReader();
  return new ReadableStream({
    async pull(controller) {
      const next = await reader?.read().catch(() => null);
      if (next?.value === undefined) controller.close();
      else controller.enqueue(next.value);
    },
    cancel: async () => reader?.cancel().catch(() => {}),
  });
}
