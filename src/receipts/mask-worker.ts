import { maskAction } from "./masked-action.ts";
import type { MaskOrder } from "./see.ts";

/** The worker thread that masks long texts. */

declare const self: Worker;

self.addEventListener("message", ({ data: { actions, viewer, answers } }: MessageEvent<MaskOrder>) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
  self.postMessage(actions.map((action) => maskAction(action, viewer, answers)));
});
