/** The newest actions of the account, as a resource. */
export const ACTIONS_URI = "outgate://actions";

/** One action as a resource. */
export function uriOf(actionId: string): string {
  return `${ACTIONS_URI}/${actionId}`;
}

/** The id in the address of an action; null for any other. */
export function actionIn(uri: string): string | null {
  return /^outgate:\/\/actions\/(act_[A-Za-z0-9_-]{1,64})$/.exec(uri)?.[1] ?? null;
}
