import { charsToMask, maskedAction, withMasked } from "../contract/masked.ts";
import type { Action } from "../domain/action.ts";
import { MASKED_INLINE_CHARS_MAX } from "../domain/limits.ts";
import { seesWhole, type Viewer } from "../domain/scope.ts";

/** Actions to mask, as they cross to the thread. */
export interface MaskOrder {
  readonly call: number;
  readonly actions: readonly Action[];
}

/** The same actions, masked, as they cross back. */
export interface MaskReply {
  readonly call: number;
  readonly masked: readonly Action[];
}

/**
 * The actions as they came, ready for `maskedAction`, which then costs nothing. Masking a megabyte may take 0.2 s, during
 * which the event loop would answer nobody: what is long is masked on another thread. Call it before anything that masks;
 * what was forgotten is masked all the same, but on the event loop.
 */
export async function maskAhead(actions: readonly Action[]): Promise<readonly Action[]> {
  const chars = actions.reduce((sum, action) => sum + charsToMask(action), 0);
  if (chars <= MASKED_INLINE_CHARS_MAX) return actions;
  thread ??= new Thread(() => (thread = null));
  const masked = await thread.mask(actions);
  return actions.map((action, at) => withMasked(action, masked[at] ?? maskedAction(action)));
}

/** The same of one action. */
export async function maskOneAhead(action: Action): Promise<Action> {
  const [ready = action] = await maskAhead([action]);
  return ready;
}

/** The actions, ready for whoever sees them, each of them whole or masked. */
export async function allReadyFor(viewer: Viewer, actions: readonly Action[]): Promise<readonly Action[]> {
  const masked = actions.filter((action) => !seesWhole(viewer, action));
  if (masked.length === 0) return actions;
  const ready = (await maskAhead(masked)).values();
  return actions.map((action) => (seesWhole(viewer, action) ? action : (ready.next().value ?? action)));
}

/** The same of one action. */
export async function readyFor(viewer: Viewer, action: Action): Promise<Action> {
  return seesWhole(viewer, action) ? action : maskOneAhead(action);
}

/** Begins with the first long text: most services never need it. */
let thread: Thread | null = null;

interface Call {
  resolve(masked: readonly Action[]): void;
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

  mask(actions: readonly Action[]): Promise<readonly Action[]> {
    this.#last += 1;
    const order: MaskOrder = { call: this.#last, actions };
    const { promise, resolve, reject } = Promise.withResolvers<readonly Action[]>();
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
