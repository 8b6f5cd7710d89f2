import type htmxLibrary from "htmx.org/dist/htmx.esm.js";
import type { HtmxResponseInfo } from "htmx.org/dist/htmx.esm.js";
import type { Idiomorph as IdiomorphLibrary } from "idiomorph/dist/idiomorph.js";

// Every page loads both before the console.
declare global {
  const htmx: typeof htmxLibrary;
  const Idiomorph: typeof IdiomorphLibrary;

  /** The events of htmx, with request and answer. */
  interface WindowEventMap {
    "htmx:beforeRequest": CustomEvent<HtmxResponseInfo>;
    "htmx:afterRequest": CustomEvent<HtmxResponseInfo>;
    "htmx:sendError": CustomEvent<HtmxResponseInfo>;
    "htmx:beforeSwap": CustomEvent<HtmxResponseInfo>;
    "htmx:afterSwap": CustomEvent<HtmxResponseInfo>;
    "htmx:beforeHistoryUpdate": CustomEvent<HtmxResponseInfo & { readonly history: { type: string } }>;
  }
}
