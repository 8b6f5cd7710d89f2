import { maskedNow, type MaskOrder, type MaskReply } from "./masked-action.ts";

/** The thread that masks long texts, one order after the other. It shares nothing with the event loop but messages. */

declare const self: Worker;

self.addEventListener("message", ({ data: { call, viewer, actions } }: MessageEvent<MaskOrder>) => {
  const reply: MaskReply = { call, masked: actions.map((action) => maskedNow(action, viewer)) };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
  self.postMessage(reply);
});
