import { LOGIN_WINDOW_MS, LOGINS_REMEMBERED_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";

interface CountWindow {
  count: number;
  readonly startedMs: number;
}

/** How often each name was counted within a minute from its first count on. */
export interface Windows {
  /** Milliseconds until a further count of this name is allowed; 0: it is now. */
  fullForMs(name: string): number;
  /** Returns how to take the count back. */
  count(name: string): () => void;
}

export function createWindows(clock: Pick<Clock, "monotonicMs">, countMax: number): Windows {
  // In the order in which they began, since a map keeps the order in which it was filled.
  const windows = new Map<string, CountWindow>();
  const forgetOld = () => {
    const oldestMs = clock.monotonicMs() - LOGIN_WINDOW_MS;
    for (const [name, { startedMs }] of windows) {
      if (startedMs > oldestMs && windows.size < LOGINS_REMEMBERED_MAX) return;
      windows.delete(name);
    }
  };
  return {
    fullForMs(name) {
      forgetOld();
      const window = windows.get(name);
      if (window === undefined || window.count < countMax) return 0;
      return window.startedMs + LOGIN_WINDOW_MS - clock.monotonicMs();
    },
    count(name) {
      const window = windows.get(name) ?? { count: 0, startedMs: clock.monotonicMs() };
      window.count += 1;
      windows.set(name, window);
      return () => {
        window.count -= 1;
        if (window.count === 0 && windows.get(name) === window) windows.delete(name);
      };
    },
  };
}
