import { AuditQuery, checkAudit } from "../audit/schemas.ts";
import type { AuditService } from "../audit/service.ts";
import { type AuditKind } from "../core/audit.ts";
import { compileQuery, encodeCursor } from "../api/schema-helpers.ts";
import type { KeyService } from "../accounts/keys.ts";
import type { TeamService } from "../accounts/team.ts";
import type { ChannelService } from "../channels/service.ts";
import { AUDIT_MENU_MAX } from "../core/limits.ts";
import { readQuery, withoutEmpty } from "../http/request.ts";
import { page } from "../http/response.ts";
import { createPersonRoutes, type Person, type PersonOf } from "../http/session.ts";
import type { Clock } from "../core/clock.ts";
import { actorsLike, AUDIT_PATH, auditPage, type AuditNames } from "./audit.tsx";
import { queryText } from "../ui/layout.tsx";

interface AuditPageDeps {
  readonly personOf: PersonOf;
  readonly auditService: Pick<AuditService, "list">;
  readonly teamService: Pick<TeamService, "list">;
  readonly keyService: Pick<KeyService, "list">;
  readonly channelService: Pick<ChannelService, "list">;
  readonly clock: Pick<Clock, "now">;
}

const PAGE_QUERY = compileQuery(AuditQuery);

/** The audit log for people, filtered by the parameters of /v1/audit. Here an actor means all that they are called by. */
export function auditPages(deps: AuditPageDeps) {
  const { auditService, personOf, clock } = deps;
  return createPersonRoutes(personOf).get(AUDIT_PATH, async ({ context, person }) => {
    const query = readQuery(withoutEmpty(context.search), PAGE_QUERY);
    const asked = checkAudit(query);
    const [actor = null] = asked.actors;
    const wanted = { ...asked, actors: actor === null ? [] : actorsLike(actor) };
    const { rows, before } = await auditService.list(person.caller, wanted);
    const { actors, names } = await namesOf(deps, person);
    const pathOf = (kinds: readonly AuditKind[], one: string | null) =>
      AUDIT_PATH + queryText({ ...query, kind: kinds, actor: one, cursor: null });
    const older = before === null ? null : { ...query, cursor: encodeCursor(String(before)) };
    return page(
      "own",
      auditPage({
        user: person,
        entries: rows,
        kinds: asked.kinds,
        actor,
        actors,
        names,
        pathOf,
        older: older === null ? null : AUDIT_PATH + queryText(older),
        now: clock.now(),
      }),
    );
  });
}

/** Who can be chosen, people first, and the names of keys and channels. */
async function namesOf({ teamService, keyService, channelService }: AuditPageDeps, { caller }: Person) {
  const [people, keys, channels] = await Promise.all([
    teamService.list(caller),
    keyService.list(caller),
    channelService.list(caller),
  ]);
  const names: AuditNames = {
    keys: new Map(keys.map(({ id, name }) => [id, name])),
    channels: new Map(channels.map(({ id, name }) => [id, name])),
  };
  const live = keys.filter(({ revokedAt }) => revokedAt === null);
  const all = [...people.map(({ email }) => `user:${email}`), ...live.map(({ name }) => `key:${name}`)];
  return { names, actors: [...new Set(all)].slice(0, AUDIT_MENU_MAX).concat("system", "anonymous") };
}
