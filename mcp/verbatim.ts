/** The random part of a placeholder, which clients can't guess. */
type NewToken = () => string;

const NAME = "outgate:verbatim";
const PLACEHOLDER = new RegExp(`\\{"${NAME}":"([0-9a-f]+)"\\}`, "g");

/**
 * Puts JSON text into responses of the SDK, which accepts only objects: a placeholder object goes through the SDK, and is
 * replaced by the text in the printed response. Numbers stay as they were written, without parsing the text (for 1 MB of
 * numbers that would block the event loop for 200 ms).
 */
export class Verbatim {
  readonly #newToken: NewToken;
  readonly #texts = new Map<string, string>();

  constructor(newToken: NewToken) {
    this.#newToken = newToken;
  }

  /** Returns a placeholder for `json`, which must have no line breaks. */
  put(json: string): Record<string, unknown> {
    const token = this.#newToken();
    this.#texts.set(token, json);
    return { [NAME]: token };
  }

  /** The response with placeholders replaced; in a stream message by message. */
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
