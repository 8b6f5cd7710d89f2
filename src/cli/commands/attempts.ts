import type { AttemptList } from "../../client/openapi.ts";
import { clockTime, visible } from "../../observability/terminal.ts";
import { failureIn } from "../action-list.ts";
import { type CliCommand } from "../command.ts";
import { findActionId } from "../find-action.ts";
import { addServiceCommand, JSON_OPTION, printList, withSession } from "../session.ts";
import type { Cell, Column } from "../table.ts";

/** `outgate attempts`: what came back of the newest attempts of an action. */
export function addAttempts(program: CliCommand): void {
  addServiceCommand(program, "attempts <id>", "show the newest attempts of an action, and what came back of each")
    .option(...JSON_OPTION)
    .examples([
      ["outgate attempts 01m82and0zenh", "the newest 5, oldest first"],
      ["outgate attempts 01m82and0zenh | jq .response_body", "what each was answered with"],
    ])
    .runs(
      withSession(async (session, _options, id) =>
        printList(session, await session.client.getAttempts(await findActionId(session, id)), {
          headings: COLUMNS,
          rowOf: attemptRow,
          empty: "No attempt has ended yet.",
        }),
      ),
    );
}

const COLUMNS: readonly Column[] = [
  { heading: "RUN", leaves: 1 },
  { heading: "TRY" },
  { heading: "ENDED" },
  { heading: "OUTCOME" },
  { heading: "TOOK" },
  { heading: "ANSWER", min: 20 },
];

type AttemptItem = AttemptList["data"][number];

function attemptRow(attempt: AttemptItem): readonly Cell[] {
  const { run, attempt: count, at, duration_ms: ms } = attempt;
  return [
    String(run),
    String(count),
    { text: `${at.slice(0, 10)} ${clockTime(new Date(at))}`, color: "grey" },
    outcomeOf(attempt),
    ms === null ? "" : `${ms} ms`,
    visible(answerOf(attempt)),
  ];
}

function outcomeOf({ outcome, response_code: code, error }: AttemptItem): Cell {
  if (outcome === "unknown") return { text: "unknown", color: "yellow" };
  if (code === null) return { text: "not sent", color: "red" };
  return { text: String(code), color: error === null ? "green" : "red" };
}

/** What the target says, or why it failed. */
function answerOf({ response_body: body, error, location, response_truncated: isCut }: AttemptItem): string {
  const failure = failureIn({ response_body: body, last_error: error });
  if (failure !== null) return failure;
  if (location !== null) return `to ${location}`;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return body === null ? "" : `${text}${isCut === true ? "…" : ""}`;
}
