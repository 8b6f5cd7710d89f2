/** What a signing secret signs. Each has secrets of its own, so that no callback can be taken for a call. */
export const SIGNING_USES = ["calls", "callbacks"] as const;
export type SigningUse = (typeof SIGNING_USES)[number];
