/** Longer than anything that /mcp takes, so that its own answer is the one that a client gets. */
const LINE_BYTES_MAX = 4 * 1_048_576;

/** A line that is too long; what follows on it is dropped. */
export const TOO_LONG = Symbol("too long");

/** The lines of a stream, without their ends. A line without its end, when the stream is over, counts too. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  bytesMax = LINE_BYTES_MAX,
): AsyncGenerator<string | typeof TOO_LONG> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const take = () => {
    const line = bytes > bytesMax ? TOO_LONG : Buffer.concat(parts).toString("utf8").replace(/\r$/, "");
    [parts, bytes] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      bytes += end - start;
      if (bytes <= bytesMax) parts.push(chunk.subarray(start, end));
      start = end + 1;
      yield take();
    }
    bytes += chunk.length - start;
    if (bytes <= bytesMax) parts.push(chunk.slice(start));
    else parts = [];
  }
  if (bytes > 0) yield take();
}

const NEWLINE = 0x0a;

/** The data of each event of a stream (HTML, "Server-sent events"), as one line. */
export async function* eventsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let data: string[] = [];
  for await (const line of linesOf(chunks, Number.POSITIVE_INFINITY)) {
    if (line === TOO_LONG) continue;
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    if (line !== "" || data.length === 0) continue;
    yield data.join(" ");
    data = [];
  }
}
