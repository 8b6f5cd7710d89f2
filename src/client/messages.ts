/** One event as it came over the wire, or what else a block of lines said. */
export interface Message {
  /** Where the stream stands after it; null: nothing was said of it. */
  readonly id: string | null;
  readonly data: string | null;
  /** How long to wait before coming back. */
  readonly retryMs: number | null;
}

/** Longer than any event of ours: body, response and error of one action are 3 MB at most. */
const BLOCK_CHARS_MAX = 16 * 1_048_576;

/** Server-sent events out of bytes (WHATWG HTML, "Server-sent events"). What is cut off at the end is dropped. */
export async function* messagesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Message> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of bytes) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > BLOCK_CHARS_MAX) throw new Error("An event is too long.");
    // A line end may be cut in two.
    const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
    const blocks = whole.split(/\r\n\r\n|\n\n|\r\r/);
    const rest = blocks.pop() ?? "";
    text = rest + text.slice(whole.length);
    for (const block of blocks) yield messageOf(block);
  }
}

function messageOf(block: string): Message {
  let id: string | null = null;
  let retryMs: number | null = null;
  const data: string[] = [];
  for (const line of block.split(/\r\n|\r|\n/)) {
    const [, field = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "id" && !value.includes("\0")) id = value;
    if (field === "data") data.push(value);
    if (field === "retry" && /^\d{1,9}$/.test(value)) retryMs = Number(value);
  }
  return { id, data: data.length === 0 ? null : data.join("\n"), retryMs };
}
