import { IDLE_SECONDS } from "./waiting.ts";
import type { RequestContext } from "./visit.ts";

/**
 * Runs something whose answer may be a stream, for as long as that lasts: the time limit of the request is lifted until
 * the answer has ended, or the client is gone. `over` is aborted then. The body has to be in by now.
 */
export async function whileStreaming(
  context: RequestContext,
  work: (over: AbortSignal) => Promise<Response>,
): Promise<Response> {
  const { request, server } = context;
  const end = new AbortController();
  const release = () => {
    if (end.signal.aborted) return;
    end.abort();
    // Bun does not bring it back by itself: the connection would stay open for good (measured).
    server?.timeout(request, IDLE_SECONDS);
  };
  server?.timeout(request, 0);
  try {
    const response = await work(end.signal);
    if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
      if (context.kind === "work") context.kind = "stream";
      return watched(response, release);
    }
    release();
    return response;
  } catch (error) {
    release();
    throw error;
  }
}

/** A line of a stream that means nothing (HTML, "Server-sent events"). */
const COMMENT = new TextEncoder().encode(":\n\n");

/** The same answer, whose end is told. */
function watched(response: Response, onEnd: () => void): Response {
  const stream: ReadableStream<Uint8Array> | null = response.body;
  const reader = stream?.getReader();
  if (reader === undefined) return response;
  const body = new ReadableStream<Uint8Array>({
    // Bun sends no head before the first byte: without one a client would not know for seconds that it is listening.
    start: (controller) => controller.enqueue(COMMENT),
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        onEnd();
        controller.close();
      } catch (error) {
        onEnd();
        controller.error(error);
      }
    },
    async cancel(reason) {
      onEnd();
      await reader.cancel(reason);
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}
