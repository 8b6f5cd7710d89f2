import type { ApprovalLink } from "../domain/approval-link.ts";

/** An approval link as it is kept: never the link itself. */
export interface KeptLink extends ApprovalLink {
  /** SHA-256 of its token, hex. */
  readonly hash: string;
}

/** Links of approval mails. Old ones are kept as long as their action, for they lead to its receipt. */
export interface LinkStore {
  /** Keeps links of one run, and tells until when they decide: as it was said when they were kept first. */
  keep(links: readonly KeptLink[], expiresAt: Date): Promise<Date>;
  find(link: ApprovalLink): Promise<(KeptLink & { readonly expiresAt: Date }) | null>;
  /** Makes every link worthless that was given out so far. */
  forgetAll(): Promise<void>;
}
