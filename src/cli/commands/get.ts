import { describe, describeDecision, describeTimeline, exitCodeOf } from "../action-text.ts";
import { readArguments, wholeNumber } from "../arguments.ts";
import { type Command, EXIT } from "../command.ts";
import { withSession } from "../session.ts";
import { waitForEnd } from "../wait.ts";

const GET_OPTIONS = {
  wait: { type: "string" },
  timeline: { type: "boolean" },
  json: { type: "boolean" },
} as const;

/** `outgate get`: one action, or everything that happened to it. */
export const getCommand: Command = {
  usage: "get <id> [--wait <seconds>] [--timeline] [--json]",
  details: `  --wait <seconds>  wait so long for its end
  --timeline        what happened to it, oldest first
  --json            JSON also on a terminal

  Exit code: 0 completed or on its way, 1 failed or cancelled, 3 not ended in time, 4 awaits approval.`,
  run: withSession(async (args, session) => {
    const { values, positionals } = readArguments(args, GET_OPTIONS, ["<id>"]);
    const { client, io, json, say } = session;
    const waitSeconds = wholeNumber(values.wait, "wait", 0) ?? 0;
    const action = await waitForEnd(client, await client.getAction(positionals[0] ?? ""), waitSeconds);
    const isJson = values.json === true || !io.isTty;
    if (values.timeline === true) {
      const timeline = await client.getTimeline(action.id);
      if (isJson) json(timeline);
      else say(describeTimeline(timeline, session));
      return EXIT.ok;
    }
    if (isJson) json(action);
    else if (action.status === "awaiting_approval") {
      say(describeDecision(action, await client.getDecisionFacts(action.id), session));
      say(describe(action, session));
    } else say(describe(action, session));
    return exitCodeOf(action.status, waitSeconds > 0);
  }),
};
