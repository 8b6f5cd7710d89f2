import { maskedNow, type MaskOrder, type MaskReply } from "./masked-action.ts";

/** The worker thread that masks long texts. */

declare const self: Worker;

self.addEventListener("message", ({ data: { call, viewer, actions } }: MessageEvent<MaskOrder>) => {
  const reply: MaskReply = { call, masked: actions.map((action) => maskedNow(action, viewer)) };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
  self.postMessage(reply);
});
