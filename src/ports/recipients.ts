import type { Creator } from "../domain/creator.ts";

/** Whom an action may tell of itself, by the rules that it was created under and the lists as they are now. */
export interface Recipients {
  mayCallBack(accountId: string, creator: Creator, url: string): Promise<boolean>;
  mayMail(accountId: string, creator: Creator, email: string): Promise<boolean>;
}
