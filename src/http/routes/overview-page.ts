import type { OverviewService } from "../../events/overview.ts";
import type { Clock } from "../../ports/clock.ts";
import { overviewPage } from "../../web/overview.tsx";
import { page } from "../page.ts";
import { personPage } from "../person-page.ts";
import type { Route } from "../route.ts";
import type { PersonOf } from "../session.ts";

export interface OverviewPageDeps {
  readonly overviewService: Pick<OverviewService, "read">;
  readonly personOf: PersonOf;
  readonly clock: Clock;
}

/** How the account's actions went in the last day. */
export function overviewPages({ overviewService, personOf, clock }: OverviewPageDeps): readonly Route[] {
  return [
    personPage(personOf, "GET", "/overview", async (_visit, person) => {
      const answer = await overviewService.read(person.caller);
      return page("own", overviewPage({ ...answer, user: person, now: clock.now() }));
    }),
  ];
}
