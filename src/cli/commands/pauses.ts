import type { PauseList } from "../../contract/pause.ts";
import { readArguments } from "../arguments.ts";
import { type Command, EXIT } from "../command.ts";
import { withSession } from "../session.ts";
import { type Cell, seen, table } from "../style.ts";

const PAUSE = { reason: { type: "string" }, json: { type: "boolean" } } as const;
const JSON_ONLY = { json: { type: "boolean" } } as const;

/** `outgate pause`: nothing of a key, or of the account, is sent any more. */
export const pauseCommand: Command = {
  usage: "pause account | pause <key id> [--reason <text>] [--json]",
  details: `  account          the whole account
  <key id>         what this key created
  --reason <text>  why; shown with every paused action
  --json           JSON also on a terminal`,
  run: withSession(async (args, { client, io, json, say }) => {
    const { values, positionals } = readArguments(args, PAUSE, ["<account or key id>"]);
    const [what = ""] = positionals;
    const pause = await client.createPause({
      ...(what === "account" ? {} : { key_id: what }),
      ...(values.reason === undefined ? {} : { reason: values.reason }),
    });
    if (values.json === true || !io.isTty) json(pause);
    else say(`Paused. To go on: outgate resume ${seen(pause.id)}`);
    return EXIT.ok;
  }),
};

/** `outgate resume`: ends a pause. */
export const resumeCommand: Command = {
  usage: "resume <pause id>",
  run: withSession(async (args, { client, io }) => {
    const { positionals } = readArguments(args, {}, ["<pause id>"]);
    const [id = ""] = positionals;
    await client.endPause(id);
    io.err(`${seen(id)} has ended.\n`);
    return EXIT.ok;
  }),
};

/** `outgate pauses`: what is paused. */
export const pausesCommand: Command = {
  usage: "pauses [--json]",
  run: withSession(async (args, { client, io, json, say, paint }) => {
    const { values } = readArguments(args, JSON_ONLY);
    const pauses = await client.listPauses();
    if (values.json === true || !io.isTty) json(pauses);
    else say(pauses.data.length === 0 ? "Nothing is paused." : table(pauseRowsOf(pauses), paint, io.columns));
    return EXIT.ok;
  }),
};

function pauseRowsOf({ data }: PauseList): readonly (readonly Cell[])[] {
  const head = ["ID", "WHAT", "SINCE", "BY", "REASON"].map((text): Cell => ({ text, color: "grey" }));
  const rows = data.map((pause): readonly Cell[] => [
    pause.id,
    pause.key_id ?? "the whole account",
    pause.created_at,
    seen(pause.created_by),
    seen(pause.reason ?? ""),
  ]);
  return [head, ...rows];
}
