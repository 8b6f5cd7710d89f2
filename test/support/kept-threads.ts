const free: Worker[] = [];

/**
 * Lets the thread of a database that was closed write the next one: starting a thread takes 25 ms of a core, and most tests
 * need one. Called before the service is loaded, which knows nothing of it.
 */
export function keepThreads(): void {
  globalThis.Worker = new Proxy(Worker, {
    construct(target, [url, ...options]: ConstructorParameters<typeof Worker>) {
      if (!String(url).endsWith("/db/libsql/worker.ts")) return new target(url, ...options);
      return lent(free.pop() ?? new target(url, ...options));
    },
  });
}

/** As one database sees it. One that ends in another way than by a close that succeeded is not used again. */
function lent(worker: Worker): Pick<Worker, "addEventListener" | "postMessage" | "ref" | "unref" | "terminate"> {
  const over = new AbortController();
  let isClosing = false;
  let isClosed = false;
  worker.addEventListener("message", ({ data }) => (isClosed = isClosing && !String(data).includes('"failed"')), {
    signal: over.signal,
  });
  return {
    addEventListener: (...[type, listener]: Parameters<Worker["addEventListener"]>) =>
      worker.addEventListener(type, listener, { signal: over.signal }),
    postMessage(message: unknown) {
      isClosing = typeof message === "string" && message.includes('"kind":"close"');
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
      worker.postMessage(message);
    },
    ref: () => worker.ref(),
    unref: () => worker.unref(),
    terminate() {
      if (over.signal.aborted) return;
      over.abort();
      if (!isClosed) return worker.terminate();
      worker.unref();
      free.push(worker);
    },
  };
}
