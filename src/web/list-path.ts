import type { ListQuery } from "../contract/page.ts";

export const ACTIONS_PATH = "/actions";

/** Parameters to set anew; undefined takes one away. */
export type ListChanges = { readonly [Name in keyof ListQuery]?: ListQuery[Name] | undefined };

/** The path of a list with these filters, which are those of the API, with some of them changed. */
export function listPath(query: ListQuery, changes: ListChanges = {}): string {
  const pairs = Object.entries({ ...query, ...changes }).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return values.flatMap((one) => (one === undefined || one === "" ? [] : [[name, String(one)] as [string, string]]));
  });
  const text = new URLSearchParams(pairs).toString();
  return text === "" ? ACTIONS_PATH : `${ACTIONS_PATH}?${text}`;
}

/** The page of one action. */
export function actionPath(id: string): string {
  return `${ACTIONS_PATH}/${id}`;
}
