import { charsToMask, hiddenValues, maskedAction, type MaskedAhead, withMasked } from "../contract/masked.ts";
import type { Action } from "../domain/action.ts";
import { MASKED_INLINE_CHARS_MAX } from "../domain/limits.ts";
import { type Viewer, viewerOf } from "../domain/roles.ts";
import { type Reader, seesWhole } from "../domain/scope.ts";

/** Actions to mask, as they cross to the thread. */
export interface MaskOrder {
  readonly call: number;
  readonly viewer: Viewer;
  readonly actions: readonly Action[];
}

/** The same actions, masked, as they cross back. */
export interface MaskReply {
  readonly call: number;
  readonly masked: readonly MaskedAhead[];
}

/**
 * The actions as they came, ready for `maskedAction`, which then costs nothing. Masking a megabyte may take 0.2 s, during
 * which the event loop would answer nobody: what is long is masked on another thread. Call it before anything that masks;
 * what was forgotten is masked all the same, but on the event loop.
 */
export async function maskAhead(actions: readonly Action[], viewer: Viewer): Promise<readonly Action[]> {
  const chars = actions.reduce((sum, action) => sum + charsToMask(action), 0);
  if (chars <= MASKED_INLINE_CHARS_MAX) return actions;
  thread ??= new Thread(() => (thread = null));
  const masked = await thread.mask(actions, viewer);
  return actions.map((action, at) => withMasked(action, viewer, masked[at] ?? maskedNow(action, viewer)));
}

/** What crosses from the thread: the count lives beside the action here, and would be lost on the way. */
export function maskedNow(action: Action, viewer: Viewer): MaskedAhead {
  const masked = maskedAction(action, viewer);
  return { action: masked, hidden: hiddenValues(masked) };
}

/** The same of one action. */
export async function maskOneAhead(action: Action, viewer: Viewer): Promise<Action> {
  const [ready = action] = await maskAhead([action], viewer);
  return ready;
}

/** The actions, ready for whoever sees them, each of them whole or masked. */
export async function allReadyFor(reader: Reader, actions: readonly Action[]): Promise<readonly Action[]> {
  const masked = actions.filter((action) => !seesWhole(reader, action));
  if (masked.length === 0) return actions;
  const ready = (await maskAhead(masked, viewerOf(reader.role))).values();
  return actions.map((action) => (seesWhole(reader, action) ? action : (ready.next().value ?? action)));
}

/** The same of one action. */
export async function readyFor(reader: Reader, action: Action): Promise<Action> {
  return seesWhole(reader, action) ? action : maskOneAhead(action, viewerOf(reader.role));
}

/** Begins with the first long text: most services never need it. */
let thread: Thread | null = null;

interface Call {
  resolve(masked: readonly MaskedAhead[]): void;
  reject(error: unknown): void;
}

class Thread {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url).href);
  readonly #calls = new Map<number, Call>();
  #last = 0;

  /** `ended` hears when the thread has died; whoever waits for it is refused, and the next call begins another one. */
  constructor(ended: () => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<MaskReply>) => this.#answered(data));
    this.#worker.addEventListener("error", ({ message }) => {
      ended();
      for (const call of this.#calls.values()) call.reject(new Error(`The thread that masks has died: ${message}`));
      this.#calls.clear();
      this.#worker.terminate();
    });
    // It keeps no process alive but while somebody waits for it.
    this.#worker.unref();
  }

  mask(actions: readonly Action[], viewer: Viewer): Promise<readonly MaskedAhead[]> {
    this.#last += 1;
    const order: MaskOrder = { call: this.#last, viewer, actions };
    const { promise, resolve, reject } = Promise.withResolvers<readonly MaskedAhead[]>();
    if (this.#calls.size === 0) this.#worker.ref();
    this.#calls.set(this.#last, { resolve, reject });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
    this.#worker.postMessage(order);
    return promise;
  }

  #answered({ call, masked }: MaskReply): void {
    this.#calls.get(call)?.resolve(masked);
    this.#calls.delete(call);
    if (this.#calls.size === 0) this.#worker.unref();
  }
}
