import { OWNER_KEY } from "../service.ts";
import type { Balancer } from "./balancer.ts";

const AGAIN_MS = 50;
const OPEN_MS_MAX = 10_000;

/** A reader of the event stream that goes on at the next node, after the last event it has, whenever its stream ends. */
export class Follower implements AsyncDisposable {
  /** How often each event came, by its position. */
  readonly seen = new Map<number, number>();
  /** Events whose position is not above that of the one before. */
  disordered = 0;
  /** How often it had to go on at another node. */
  resumed = 0;
  refusals = 0;
  readonly #url: string;
  #lastId: string | null = null;
  #last = 0;
  #isOver = false;
  readonly #stop = new AbortController();
  #done: Promise<void> = Promise.resolve();

  private constructor(url: string) {
    this.#url = url;
  }

  /** Resolves when the stream has begun: it has every event from then on. */
  static async start(balancer: Pick<Balancer, "url">): Promise<Follower> {
    const follower = new Follower(`${balancer.url}/v1/events`);
    follower.#done = follower.#follow();
    const untilMs = performance.now() + OPEN_MS_MAX;
    while (follower.#lastId === null) {
      if (performance.now() > untilMs) throw new Error("No event stream has begun.");
      await Bun.sleep(5);
    }
    return follower;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#stop.abort();
    await this.#done;
  }

  async #follow(): Promise<void> {
    while (!this.#isOver) {
      // Whatever ends it: a node that died, the time limit of the load balancer.
      await this.#read().catch(() => {});
      this.resumed += 1;
      if (!this.#isOver) await Bun.sleep(AGAIN_MS);
    }
  }

  async #read(): Promise<void> {
    const headers = {
      Authorization: `Bearer ${OWNER_KEY}`,
      ...(this.#lastId === null ? {} : { "Last-Event-ID": this.#lastId }),
    };
    const answer = await fetch(this.#url, { headers, signal: this.#stop.signal });
    if (answer.status >= 400 && answer.status < 500) this.refusals += 1;
    if (!answer.ok || answer.body === null) return;
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of answer.body) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) this.#take(block);
    }
  }

  #take(block: string): void {
    const lines = block.split("\n");
    const id = lines.find((line) => line.startsWith("id: "))?.slice(4);
    if (id === undefined) return;
    this.#lastId = id;
    if (!lines.some((line) => line.startsWith("data: "))) return;
    const position = Number(Buffer.from(id, "base64url").toString());
    if (position <= this.#last) this.disordered += 1;
    this.#last = position;
    this.seen.set(position, (this.seen.get(position) ?? 0) + 1);
  }
}
