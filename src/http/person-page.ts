import { seeOther } from "./page.ts";
import { type Params, pageRoute, type Route } from "./route.ts";
import { askForPassword, logInPath, PasswordNeeded, type Person, type PersonOf } from "./session.ts";
import type { Visit } from "./visit.ts";

/** Answers whoever is logged in. */
export type AnswerPerson = (visit: Visit, person: Person, params: Params) => Response | Promise<Response>;

/** A page for people: who is not logged in is led to where they can, and back. */
export function personPage(personOf: PersonOf, method: "GET" | "POST", path: string, answer: AnswerPerson): Route {
  return pageRoute("own", method, path, async (visit, params) => {
    const person = await personOf(visit);
    if (person === null) {
      return seeOther("own", logInPath(visit.path + (visit.search === "" ? "" : `?${visit.search}`)));
    }
    try {
      return await answer(visit, person, params);
    } catch (error) {
      if (error instanceof PasswordNeeded) return askForPassword(visit, person, error);
      throw error;
    }
  });
}
