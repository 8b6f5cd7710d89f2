/** One event of a stream, as it was sent. */
export interface Heard {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Reads server-sent events off a real connection, by rules of its own (WHATWG HTML 9.2). */
export class Listener implements AsyncDisposable {
  readonly response: Response;
  readonly events: Heard[] = [];
  /** Comments and fields that are no event's. */
  readonly others: string[] = [];
  /** What a browser would send when it comes back. */
  lastEventId = "";
  readonly #release: AbortController;
  readonly #over: Promise<string>;
  #arrived: () => void = () => {};

  private constructor(response: Response, release: AbortController) {
    this.response = response;
    this.#release = release;
    this.#over = this.#read();
  }

  static async open(url: string, headers: Readonly<Record<string, string>>): Promise<Listener> {
    const release = new AbortController();
    return new Listener(await fetch(url, { headers, signal: release.signal }), release);
  }

  /** Resolves when so many events have come, or something else that the test waits for; rejects when the stream ends first. */
  async heard(isThere: number | ((listener: this) => boolean)): Promise<readonly Heard[]> {
    const isEnough = () => (typeof isThere === "number" ? this.events.length >= isThere : isThere(this));
    while (!isEnough()) {
      const arrival = new Promise<null>((resolve) => (this.#arrived = () => resolve(null)));
      const end = await Promise.race([arrival, this.#over]);
      if (end !== null && !isEnough()) throw new Error(`The stream ended (${end}) after ${this.events.length} events.`);
    }
    return this.events;
  }

  /** Resolves when the server has ended the stream: "closed", or the fault's name. */
  over(): Promise<string> {
    return this.#over;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#release.abort();
    await this.#over;
  }

  async #read(): Promise<string> {
    let text = "";
    const decoder = new TextDecoder();
    try {
      for await (const chunk of this.response.body ?? []) {
        text += decoder.decode(chunk, { stream: true });
        const blocks = text.split("\n\n");
        text = blocks.pop() ?? "";
        blocks.forEach((block) => this.#take(block));
        this.#arrived();
      }
      return "closed";
    } catch (error) {
      return error instanceof Error ? error.name : "unknown";
    }
  }

  #take(block: string): void {
    const fields = new Map(block.split("\n").map((line) => [line.split(":")[0] ?? "", line.replace(/^[^:]*: ?/, "")]));
    this.lastEventId = fields.get("id") ?? this.lastEventId;
    const data = fields.get("data");
    if (data === undefined) this.others.push(block);
    else this.events.push({ id: this.lastEventId, event: fields.get("event") ?? "message", data });
  }
}
