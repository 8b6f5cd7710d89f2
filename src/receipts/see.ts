import type { Action, Result } from "../core/action.ts";
import type { PastAttempt } from "../core/attempts.ts";
import { extrasText, NO_EXTRAS } from "../core/extras.ts";
import { MASKED_AT_ONCE_CHARS_MAX, MASKED_INLINE_CHARS_MAX } from "../core/limits.ts";
import { type ScopedCaller, type Viewer, viewerOf, viewOf } from "../core/roles.ts";
import { maskAction, maskedEvent } from "./masked-action.ts";
import { type MaskedAction, type MaskedMembers, markMasked, type SeenAction, seeWhole } from "./seen-action.ts";

/** An action as a caller sees it, whole or masked, or as it is masked for a viewer. */
export function see(action: Action, reader: Viewer): Promise<MaskedAction>;
export function see(action: Action, reader: ScopedCaller): Promise<SeenAction>;
export async function see(action: Action, reader: Viewer | ScopedCaller): Promise<SeenAction> {
  const view = viewFor(reader, action);
  if (view === "whole") return seeWhole(action);
  const [masked = maskAction(action, view)] = await maskAll([action], view);
  return masked;
}

/** The same for several, in their order. */
export function seeAll(actions: readonly Action[], reader: Viewer): Promise<readonly MaskedAction[]>;
export function seeAll(actions: readonly Action[], reader: ScopedCaller): Promise<readonly SeenAction[]>;
export async function seeAll(
  actions: readonly Action[],
  reader: Viewer | ScopedCaller,
): Promise<readonly SeenAction[]> {
  const viewer = typeof reader === "string" ? reader : viewerOf(reader.role);
  const isWhole = (action: Action) => viewFor(reader, action) === "whole";
  const toMask = actions.filter((action) => !isWhole(action));
  const masked = (await maskAll(toMask, viewer)).values();
  return actions.map((action) =>
    isWhole(action) ? seeWhole(action) : (masked.next().value ?? maskAction(action, viewer)),
  );
}

function viewFor(reader: Viewer | ScopedCaller, action: Action): "whole" | Viewer {
  return typeof reader === "string" ? reader : viewOf(reader, action);
}

/** Long ones are masked on a worker thread, since masking a megabyte would block the event loop for 0.1 s. */
async function maskAll(actions: readonly Action[], viewer: Viewer): Promise<readonly MaskedAction[]> {
  const chars = actions.reduce((sum, action) => sum + charsToMask(action), 0);
  if (chars <= MASKED_INLINE_CHARS_MAX) return actions.map((action) => maskAction(action, viewer));
  const masked: MaskedMembers[] = [];
  for (const some of batchesOf(actions)) {
    thread ??= new MaskThread(() => (thread = null));
    masked.push(...(await thread.mask({ actions: some, viewer })));
  }
  return actions.map((action, at) => {
    const members = masked[at];
    return members === undefined ? maskAction(action, viewer) : markMasked(members, action);
  });
}

/** Some at a time: copying a dozen long bodies from thread to thread at once would hold the event loop. */
function* batchesOf(actions: readonly Action[]): Generator<readonly Action[]> {
  let batch: Action[] = [];
  let chars = 0;
  for (const action of actions) {
    const more = charsToMask(action);
    if (batch.length > 0 && chars + more > MASKED_AT_ONCE_CHARS_MAX) {
      yield batch;
      batch = [];
      chars = 0;
    }
    batch.push(action);
    chars += more;
  }
  if (batch.length > 0) yield batch;
}

/** The number of characters that masking has to read. */
function charsToMask({ url, body, headers, callback, result, lateResult, extras }: Action): number {
  const fields = [
    url,
    body,
    callback,
    result?.responseBody,
    lateResult?.responseBody,
    ...Object.values(headers ?? {}),
    extrasText(extras),
  ];
  return fields.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

/** Attempts with what came back of them masked, on another thread where that is long. */
export async function maskedAttempts(
  action: Action,
  attempts: readonly PastAttempt[],
  viewer: Viewer,
): Promise<readonly PastAttempt[]> {
  const results = attempts.map(({ responseHeaders, responseBody, responseTruncated }) => {
    const result = { ...NO_RESULT, responseHeaders, responseBody, responseTruncated };
    return { ...action, body: null, headers: null, extras: NO_EXTRAS, result };
  });
  const seen = await seeAll(results, viewer);
  return attempts.map((attempt, at) => {
    const masked = seen[at]?.result ?? NO_RESULT;
    return { ...attempt, ...responseOf(masked), made: maskedEvent(attempt.made, viewer) };
  });
}

const NO_RESULT: Result = {
  lastError: null,
  errorSource: null,
  responseCode: null,
  responseBody: null,
  responseTruncated: false,
  durationMs: null,
  responseHeaders: null,
};

function responseOf({ responseHeaders, responseBody, responseTruncated }: Result) {
  return { responseHeaders, responseBody, responseTruncated };
}

/** Created for the first long text; most services never need it. */
let thread: MaskThread | null = null;

/** The message to the worker, which answers each in order with the masked actions. */
export interface MaskOrder {
  readonly actions: readonly Action[];
  readonly viewer: Viewer;
}

class MaskThread {
  readonly #worker = new Worker(new URL("./mask-worker.ts", import.meta.url).href);
  #calls: PromiseWithResolvers<readonly MaskedMembers[]>[] = [];

  /** `ended` is called if the worker fails: waiting calls are rejected, and the next call starts a new worker. */
  constructor(ended: () => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<readonly MaskedMembers[]>) => {
      this.#calls.shift()?.resolve(data);
      // An idle worker must not keep the process alive.
      if (this.#calls.length === 0) this.#worker.unref();
    });
    this.#worker.addEventListener("error", ({ message }) => {
      ended();
      for (const call of this.#calls) call.reject(new Error(`The masking worker failed: ${message}`));
      this.#calls = [];
      this.#worker.terminate();
    });
  }

  mask(order: MaskOrder): Promise<readonly MaskedMembers[]> {
    const call = Promise.withResolvers<readonly MaskedMembers[]>();
    this.#calls.push(call);
    this.#worker.ref();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
    this.#worker.postMessage(order);
    return call.promise;
  }
}
