/** One call as the target received it. */
export interface Arrival {
  readonly id: string;
  readonly attempt: number;
  readonly atMs: number;
  readonly status: number;
}

/** One callback as its receiver received it. */
export interface CallbackArrival {
  readonly webhookId: string;
  readonly event: string;
  readonly actionId: string;
}

export interface WitnessOptions {
  /** How long the target takes for a call, in milliseconds, or what it waits for. */
  readonly delay?: (arrival: Arrival) => number | Promise<void>;
  /** What it answers. */
  readonly status?: (call: Pick<Arrival, "attempt">) => number;
  readonly hostname?: string;
}

/** Target and receiver of callbacks, which write down everything that arrives before they answer. */
export class Witness implements AsyncDisposable {
  readonly arrivals: Arrival[] = [];
  readonly callbacks: CallbackArrival[] = [];
  readonly #target: ReturnType<typeof Bun.serve>;
  readonly #receiver: ReturnType<typeof Bun.serve>;
  readonly #hostname: string;
  inFlight = 0;

  constructor({ delay = () => 0, status = () => 200, hostname = "127.0.0.1" }: WitnessOptions = {}) {
    this.#hostname = hostname;
    this.#target = Bun.serve({
      port: 0,
      hostname,
      idleTimeout: 120,
      fetch: async (request) => {
        const id = request.headers.get("webhook-id") ?? "";
        const attempt = Number(request.headers.get("x-outgate-attempt"));
        const arrival = { id, attempt, atMs: performance.now(), status: status({ attempt }) };
        this.arrivals.push(arrival);
        this.inFlight += 1;
        await request.arrayBuffer();
        const wait = delay(arrival);
        await (typeof wait === "number" ? Bun.sleep(wait) : wait);
        this.inFlight -= 1;
        return new Response("ok", { status: arrival.status });
      },
    });
    this.#receiver = Bun.serve({
      port: 0,
      hostname,
      fetch: async (request) => {
        const { type, data } = (await request.json()) as { type: string; data: { id: string } };
        const webhookId = request.headers.get("webhook-id") ?? "";
        this.callbacks.push({ webhookId, event: type, actionId: data.id });
        return new Response();
      },
    });
  }

  get targetUrl(): string {
    return `http://${this.#hostname}:${this.#target.port}/`;
  }

  get callbackUrl(): string {
    return `http://${this.#hostname}:${this.#receiver.port}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#target.stop(true), this.#receiver.stop(true)]);
  }
}
