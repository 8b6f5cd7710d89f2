import { REFUSED_BODY_BYTES_DROPPED_MAX, REFUSED_BODY_LINGER_MS, REFUSED_BODY_MS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { RequestContext } from "./visit.ts";

/**
 * An answer that was ready before the body was read. It goes out at once, since a client may wait for it before it sends
 * more; the connection closes when the rest was read and dropped: closed earlier, the client would see a reset instead of
 * the answer, and kept open, whatever follows on it would be executed (hostile 1).
 */
export async function closeWithAnswer(context: RequestContext, response: Response, clock: Clock): Promise<Response> {
  const rest = drainBody(context.request, clock);
  const hasNoBody = context.request.method === "HEAD" || response.body === null;
  const isOver = await Promise.race([rest.then(() => true), hasNoBody ? rest.then(() => true) : nextTurn()]);
  const headers = new Headers(response.headers);
  headers.set("connection", "close");
  const init = { status: response.status, headers };
  if (isOver) return new Response(response.body, init);
  const bytes = await response.bytes();
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(bytes);
      await rest;
      controller.close();
    },
  });
  return new Response(body, init);
}

/**
 * Reads what is left of a body and drops it: up to 4 MiB or 2 s of it, and rests for a moment where there was more, so
 * that the reset of a close does not overtake the answer. Never throws.
 */
export async function drainBody({ body }: Request, clock: Clock): Promise<void> {
  const stream: ReadableStream<Uint8Array> | null = body;
  if (stream === null || stream.locked) return;
  const reader = stream.getReader();
  const isLate = Promise.withResolvers<{ done: true; value?: undefined }>();
  const cancelTimer = clock.after(REFUSED_BODY_MS_MAX, () => isLate.resolve({ done: true }));
  try {
    for (let dropped = 0; dropped < REFUSED_BODY_BYTES_DROPPED_MAX;) {
      const { done, value } = await Promise.race([reader.read(), isLate.promise]);
      if (done) return;
      dropped += value.byteLength;
    }
    await new Promise<void>((resolve) => void clock.after(REFUSED_BODY_LINGER_MS, resolve));
    await reader.cancel();
  } catch {
    // The client is gone, and with it whoever the answer was for.
  } finally {
    cancelTimer();
  }
}

/** False, a turn of the event loop later: by then a body that came with its head is dropped. */
function nextTurn(): Promise<false> {
  return new Promise((resolve) => setImmediate(() => resolve(false)));
}
