/** What a person may say to a held action. */
export const DECISIONS = ["approve", "reject"] as const;
export type Decision = (typeof DECISIONS)[number];

/** One of the two links of an approval mail. Both open the same page; they differ in what `one_click` does with them. */
export interface ApprovalLink {
  readonly actionId: string;
  /** One yes releases one run: the links of the run before a retry decide nothing (decisions 3). */
  readonly run: number;
  readonly decision: Decision;
}
