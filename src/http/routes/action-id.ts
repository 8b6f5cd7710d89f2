import { DomainError } from "../../domain/errors.ts";
import { ACTION_ID } from "../../domain/id.ts";
import type { Params } from "../route.ts";
import type { RequestContext } from "../visit.ts";

/** The id in the path. What can't be an id is as unknown as one that nobody has, in the same words (hostile 1). */
export function actionIdOf(context: RequestContext, params: Params): string {
  const id = params["id"] ?? "";
  if (!ACTION_ID.test(id)) throw new DomainError("not_found", "There is no such action.");
  context.actionId = id;
  return id;
}
