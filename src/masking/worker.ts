/** The thread that masks long texts, one order after the other. It shares nothing with the event loop but messages. */
import { maskedAction } from "../contract/masked.ts";
import type { MaskOrder, MaskReply } from "./ahead.ts";

declare const self: Worker;

self.addEventListener("message", ({ data: { call, actions } }: MessageEvent<MaskOrder>) => {
  const reply: MaskReply = { call, masked: actions.map(maskedAction) };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
  self.postMessage(reply);
});
