import type { FirstStepService } from "../accounts/first-steps.ts";
import { compileQuery } from "../api/schema-helpers.ts";
import { RANGE_DEFAULT } from "../events/overview-routes.ts";
import type { OverviewService } from "../events/overview.ts";
import { readQuery, withoutEmpty } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { createPersonRoutes, type PersonRouteDeps } from "../http/session.ts";
import type { Clock } from "../core/clock.ts";
import { answerForm } from "./forms.tsx";
import { FIRST_STEPS_PATH } from "./first-steps.tsx";
import { OVERVIEW_PATH } from "../ui/layout.tsx";
import { OverviewPageQuery, overviewPage } from "./overview.tsx";

const OVERVIEW_QUERY = compileQuery(OverviewPageQuery);

interface OverviewPageDeps extends PersonRouteDeps {
  readonly overviewService: Pick<OverviewService, "read">;
  readonly firstSteps: FirstStepService;
  readonly clock: Clock;
  readonly baseUrl: string;
}

/** The overview, with the first steps of an account until they are done or hidden. */
export function overviewPages({ overviewService, firstSteps, personOf, formOf, clock, baseUrl }: OverviewPageDeps) {
  const hide = answerForm(formOf, async ({ person, form }) => {
    await (form.get("hidden") === "no" ? firstSteps.show(person.caller) : firstSteps.hide(person.caller));
    return OVERVIEW_PATH;
  });
  return (
    createPersonRoutes(personOf)
      .get(OVERVIEW_PATH, async ({ context, person }) => {
        const { range = RANGE_DEFAULT, view = "charts" } = readQuery(withoutEmpty(context.search), OVERVIEW_QUERY);
        const [answer, steps] = await Promise.all([
          overviewService.read(person.caller, range),
          firstSteps.read(person.caller),
        ]);
        return page("own", overviewPage({ ...answer, steps, view, user: person, now: clock.now(), baseUrl }));
      })
      // Where the address of a refused form is loaded again.
      .get(FIRST_STEPS_PATH, () => seeOther("own", OVERVIEW_PATH))
      .post(FIRST_STEPS_PATH, hide)
  );
}
