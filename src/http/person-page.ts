import { seeOther } from "./page.ts";
import { type Params, pageRoute, type Route } from "./route.ts";
import { askForPassword, logInPath, PasswordNeeded, type Person, type PersonOf } from "./session.ts";
import type { RequestContext } from "./visit.ts";

/** Answers whoever is logged in. */
export type AnswerPerson = (context: RequestContext, person: Person, params: Params) => Response | Promise<Response>;

/** A page for people: who is not logged in is led to where they can, and back. */
export function personPage(personOf: PersonOf, method: "GET" | "POST", path: string, answer: AnswerPerson): Route {
  return pageRoute("own", method, path, async (context, params) => {
    const person = await personOf(context);
    if (person === null) {
      return seeOther("own", logInPath(context.path + (context.search === "" ? "" : `?${context.search}`)));
    }
    try {
      return await answer(context, person, params);
    } catch (error) {
      if (error instanceof PasswordNeeded) return askForPassword(context, person, error);
      throw error;
    }
  });
}
