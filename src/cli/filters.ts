import type { FilterQuery } from "../client/openapi.ts";
import { ERROR_KINDS, OUTCOMES } from "../core/outcome.ts";
import { type CliCommand, given, several } from "./command.ts";
import { findActionId } from "./action-list.ts";
import type { Session } from "./session.ts";
import { HTTP_METHODS } from "../core/target.ts";

/** What the options of `addFilterOptions` say: the filters of the API, with the beginnings of ids. */
export interface FilterOptions extends Omit<FilterQuery, "reason"> {
  readonly reason_text?: string;
}

/** Collects statuses; `held` is short for `awaiting_approval`. */
export function statuses(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text === "held" ? "awaiting_approval" : text];
}

/** The filters of the API, but for the status, which each command has in its own way. */
export function addFilterOptions(command: CliCommand): CliCommand {
  return command
    .option("--id <id>", "only these actions; may be given several times", several)
    .member("q", "--search <text>", "in host, path or title, or the start of an id")
    .choice("--method <method>", "of the call", HTTP_METHODS, (text) => text.toUpperCase())
    .option("--host <host>", "host name, with a port or for any port")
    .option("--path <path>", "the start of the target's path")
    .option("--dedupe <key>", "the dedupe key of the create")
    .option("--created-by <id>", "id of the key that created them")
    .member("created_after", "--after <time>", "created later than this, such as 2026-03-04T12:00:00Z")
    .member("created_before", "--before <time>", "created earlier than this")
    .member(
      "response_code",
      "--code <status>",
      "status of the target or a class such as 5xx; may be given several times",
      several,
    )
    .choice("--outcome <outcome>", "of the newest attempt", OUTCOMES)
    .choice("--error <kind>", "of the newest attempt's failure", ERROR_KINDS)
    .option("--title <text>", "in the title")
    .option("--reason-text <text>", "in the requester's reason")
    .option("--metadata <name:value>", "a value, or any value of a name; all of several", several);
}

/** The same as a query of the API, with whole ids. */
export async function filterQueryOf(
  session: Session,
  { id: texts, reason_text: reason, ...query }: FilterOptions,
): Promise<FilterQuery> {
  const ids: string[] = [];
  // One after another, so that an ambiguous one is reported before the rest is looked up.
  for (const text of texts ?? []) ids.push(await findActionId(session, text));
  return { ...query, ...given({ reason, id: texts && ids }) };
}
