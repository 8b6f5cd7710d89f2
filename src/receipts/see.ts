import { type Action, type Result, extrasText } from "../core/action.ts";
import type { PastAttempt } from "../core/changes.ts";
import { MASKED_AT_ONCE_CHARS_MAX, MASKED_INLINE_CHARS_MAX } from "../core/limits.ts";
import { type ScopedCaller, type Viewer, roleViewer, callerView } from "../core/roles.ts";
import { maskAction, maskedEvent } from "./masked-action.ts";
import { markMasked, type MaskedAction, type MaskedMembers, type SeenAction } from "./seen-action.ts";

/** The action as a caller may see it, whole or masked; or masked for a viewer. */
export function see(action: Action, reader: Viewer): Promise<MaskedAction>;
export function see(action: Action, reader: ScopedCaller): Promise<SeenAction>;
export async function see(action: Action, reader: Viewer | ScopedCaller): Promise<SeenAction> {
  const view = viewFor(reader, action);
  if (view === "whole") return seeWhole(action);
  const [masked = maskAction(action, view)] = await maskAll([action], view);
  return masked;
}

/** The action for whoever may see all of it: its creator, or a person who asked to see its secrets. */
export function seeWhole(action: Action): SeenAction {
  // Safe: the brand is in the type alone.
  return action as SeenAction;
}

/** The same for several actions, in their order. */
export function seeAll(actions: readonly Action[], reader: Viewer): Promise<readonly MaskedAction[]>;
export function seeAll(actions: readonly Action[], reader: ScopedCaller): Promise<readonly SeenAction[]>;
export async function seeAll(
  actions: readonly Action[],
  reader: Viewer | ScopedCaller,
): Promise<readonly SeenAction[]> {
  const viewer = typeof reader === "string" ? reader : roleViewer(reader.role);
  const isWhole = (action: Action) => viewFor(reader, action) === "whole";
  const toMask = actions.filter((action) => !isWhole(action));
  const masked = (await maskAll(toMask, viewer)).values();
  return actions.map((action) =>
    isWhole(action) ? seeWhole(action) : (masked.next().value ?? maskAction(action, viewer)),
  );
}

/** An action and its attempts as a viewer may see them. */
interface SeenHistory {
  readonly action: MaskedAction;
  readonly attempts: readonly PastAttempt[];
}

/** Masks an action with the responses of its attempts, which may repeat secrets of its request. */
export async function seeHistory(
  action: Action,
  attempts: readonly PastAttempt[],
  viewer: Viewer,
): Promise<SeenHistory> {
  const answers = attempts.map(({ responseHeaders, responseBody, responseTruncated }) => {
    return { ...NO_RESULT, responseHeaders, responseBody, responseTruncated };
  });
  const [masked = maskAction(action, viewer, answers)] = await maskAll([action], viewer, answers);
  const shown = attempts.map((attempt, at) => {
    const { responseHeaders, responseBody, responseTruncated } = masked.answers?.[at] ?? NO_RESULT;
    const made = maskedEvent(attempt.made, viewer, action);
    return { ...attempt, responseHeaders, responseBody, responseTruncated, made };
  });
  return { action: masked, attempts: shown };
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

function viewFor(reader: Viewer | ScopedCaller, action: Action): "whole" | Viewer {
  return typeof reader === "string" ? reader : callerView(reader, action);
}

/** Masks long actions on a worker thread, since masking a megabyte would block the event loop for 0.1 s. */
async function maskAll(
  actions: readonly Action[],
  viewer: Viewer,
  answers: readonly Result[] = [],
): Promise<readonly MaskedAction[]> {
  const ofActions = actions.reduce((sum, action) => sum + charsToMask(action), 0);
  const chars = answers.reduce((sum, { responseBody }) => sum + (responseBody?.length ?? 0), ofActions);
  if (chars <= MASKED_INLINE_CHARS_MAX) return actions.map((action) => maskAction(action, viewer, answers));
  const masked: MaskedMembers[] = [];
  for (const batch of splitBatches(actions)) {
    thread ??= new MaskThread(() => (thread = null));
    masked.push(...(await thread.mask({ actions: batch, viewer, answers })));
  }
  return actions.map((action, at) => {
    const members = masked[at];
    return members === undefined ? maskAction(action, viewer, answers) : markMasked(members, action);
  });
}

/** Splits actions into batches: copying a dozen long bodies to the other thread at once would block the event loop. */
function* splitBatches(actions: readonly Action[]): Generator<readonly Action[]> {
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
  let chars = url.length;
  const texts = [body, callback, result?.responseBody, lateResult?.responseBody, extrasText(extras)];
  for (const text of texts) chars += text?.length ?? 0;
  for (const text of Object.values(headers ?? {})) chars += text.length;
  return chars;
}

/** Started for the first long text; most services never need it. */
let thread: MaskThread | null = null;

/** A message to the worker, which answers in order with the masked actions. */
export interface MaskOrder {
  readonly actions: readonly Action[];
  readonly viewer: Viewer;
  /** More answers to the request, of attempts. */
  readonly answers: readonly Result[];
}

class MaskThread {
  readonly #worker = new Worker(new URL("./mask-worker.ts", import.meta.url).href);
  #calls: PromiseWithResolvers<readonly MaskedMembers[]>[] = [];

  /** If the worker fails, waiting calls are rejected, and `ended` lets the next call start a new one. */
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
