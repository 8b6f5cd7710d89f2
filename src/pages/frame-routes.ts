import { checkFilters } from "../api/list-schemas.ts";
import type { TeamService } from "../accounts/team.ts";
import type { ActionService } from "../actions/service.ts";
import { type Caller, mayDo, viewerOf } from "../core/roles.ts";
import { NAV_FAILING_MS, PALETTE_ACTIONS_MAX, PALETTE_TEXT_CHARS_MAX } from "../core/limits.ts";
import { createPersonRoutes, type Person, type PersonOf, type PersonRouteDeps } from "../http/session.ts";
import { page } from "../http/response.ts";
import { normalHost } from "../core/target.ts";
import type { PauseOf } from "../core/pause.ts";
import { maskedPause } from "../receipts/masked-action.ts";
import { seeAll } from "../receipts/see.ts";
import type { MaskedAction } from "../receipts/seen-action.ts";
import { ACTION_ID } from "../core/ids.ts";
import type { Clock } from "../core/clock.ts";
import { MORE_PATH, PALETTE_PATH } from "../ui/layout.tsx";
import { morePage, paletteList } from "./frame.tsx";
import type { NavAccount, NavBadges } from "../ui/text.ts";

interface FrameRouteDeps extends Pick<PersonRouteDeps, "personOf"> {
  readonly actionService: Pick<ActionService, "list" | "counts" | "get">;
  readonly clock: Pick<Clock, "now">;
}

interface NavDeps {
  readonly actionService: Pick<ActionService, "counts">;
  readonly teamService: Pick<TeamService, "accountsOf">;
  readonly clock: Pick<Clock, "now">;
}

/** Adds what stops the whole account to the person of a page, also of one that answers a form or an error. */
export function withStop(personOf: PersonOf, { pauseOf }: { readonly pauseOf: PauseOf }): PersonOf {
  return async (context) => {
    const person = await personOf(context);
    if (person === null) return null;
    // No key and no host: only what covers all of them.
    const stop = maskedPause(
      pauseOf({ accountId: person.caller.accountId, keyId: "", host: "" }),
      viewerOf(person.role),
    );
    return stop === null ? person : { ...person, stop };
  };
}

/** Adds what the navigation shows to the person of a page. Forms and streams don't need it. */
export function withNavigation(personOf: PersonOf, deps: NavDeps): PersonOf {
  return async (context) => {
    const person = await personOf(context);
    if (person === null || context.request.method !== "GET") return person;
    const [badges, accounts] = await Promise.all([badgesOf(deps, person.caller), accountsOf(deps, person)]);
    return { ...person, badges, ...(accounts.length === 0 ? {} : { accounts }) };
  };
}

async function accountsOf({ teamService }: NavDeps, person: Person): Promise<readonly NavAccount[]> {
  const accounts = await teamService.accountsOf(person);
  if (accounts.length === 1 && accounts[0]?.name === null) return [];
  return accounts.map(({ accountId, name, email }) => ({
    accountId,
    name,
    email,
    isCurrent: accountId === person.caller.accountId,
  }));
}

/** Both are bounded counts over an index: they cost the same in a table of any size. */
async function badgesOf({ actionService, clock }: NavDeps, caller: Caller): Promise<NavBadges> {
  const createdAfter = new Date(clock.now().getTime() - NAV_FAILING_MS);
  const [waiting, failing] = await Promise.all([
    actionService.counts(caller, { ...checkFilters({}), statuses: ["awaiting_approval"] }),
    actionService.counts(caller, { ...checkFilters({}), statuses: ["failed"], createdAfter }),
  ]);
  const none = { count: 0, isMore: false };
  return { waiting: waiting.counts[0] ?? none, failing: failing.counts[0] ?? none };
}

/** The palette, and the page behind the fourth tab of a phone. */
export function framePages(deps: FrameRouteDeps) {
  return createPersonRoutes(deps.personOf)
    .get(PALETTE_PATH, async ({ context, person }) => {
      const text = (new URLSearchParams(context.search).get("q") ?? "").trim().slice(0, PALETTE_TEXT_CHARS_MAX);
      const actions = await foundActions(deps, person, text);
      const host = text === "" || !mayDo(person.role, "manage") ? null : normalHost(text);
      return page(
        "own",
        paletteList({
          user: person,
          text,
          actions,
          host: host?.includes(".") === true ? host : null,
          now: deps.clock.now(),
        }),
      );
    })
    .get(MORE_PATH, ({ person }) => page("own", morePage(person)));
}

/** With an id in the text, that action; with other text, the newest that match; without text, the oldest that wait. */
async function foundActions(
  { actionService }: FrameRouteDeps,
  { caller }: Person,
  text: string,
): Promise<readonly MaskedAction[]> {
  const id = text.split(/[^A-Za-z0-9_-]/).find((word) => ACTION_ID.test(word));
  const filters =
    id === undefined && text !== "" ? checkFilters({ q: text }) : checkFilters({ status: ["awaiting_approval"] });
  const found =
    id === undefined
      ? (await actionService.list(caller, { ...filters, limit: PALETTE_ACTIONS_MAX })).actions
      : await actionService.get(caller, id).then(
          (action) => [action],
          () => [],
        );
  return seeAll(found, viewerOf(caller.role));
}
