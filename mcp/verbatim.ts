/** The random part of a placeholder: nobody outside can guess it. */
type NewToken = () => string;

const NAME = "outgate:verbatim";
const PLACEHOLDER = new RegExp(`\\{"${NAME}":"([0-9a-f]+)"\\}`, "g");

/**
 * JSON text in an answer of the SDK, which takes only objects: a placeholder goes through it, and the text takes its place
 * in what it prints. So numbers stay as they were written, and an action is printed once (parsing 1 MB of numbers in a
 * way that keeps their spelling would hold the event loop for 200 ms).
 */
export class Verbatim {
  readonly #newToken: NewToken;
  readonly #texts = new Map<string, string>();

  constructor(newToken: NewToken) {
    this.#newToken = newToken;
  }

  /** An object that stands for JSON text without line breaks. */
  put(json: string): Record<string, unknown> {
    const token = this.#newToken();
    this.#texts.set(token, json);
    return { [NAME]: token };
  }

  /** The same answer with the texts in their places; a stream is gone through message by message. */
  async fill(response: Response): Promise<Response> {
    const { status, headers } = response;
    const stream: ReadableStream<Uint8Array> | null = response.body;
    if (stream === null) return response;
    if (headers.get("content-type")?.startsWith("text/event-stream") === true) {
      return new Response(this.#fillStream(stream), { status, headers });
    }
    const text = await response.text();
    return new Response(this.#fill(text), { status, headers });
  }

  #fill(printed: string): string {
    if (this.#texts.size === 0) return printed;
    return printed.replaceAll(PLACEHOLDER, (whole, token: string) => this.#texts.get(token) ?? whole);
  }

  /** The SDK writes each message as one chunk. */
  #fillStream(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = stream.getReader();
    const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
    return new ReadableStream({
      pull: async (controller) => {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(this.#fill(decoder.decode(value, { stream: true }))));
      },
      cancel: (reason) => reader.cancel(reason),
    });
  }
}
