import type { OutgateClient } from "../../client/client.ts";
import { describe, exitCodeOf } from "../action-text.ts";
import { readArguments, wholeNumber } from "../arguments.ts";
import { type Command, EXIT } from "../command.ts";
import { withSession } from "../session.ts";
import { waitForEnd } from "../wait.ts";

/** A no is the cancel of what awaits approval (spec "States and transitions"). */
const CALLS = {
  approve: (client: OutgateClient) => client.approveAction,
  reject: (client: OutgateClient) => client.cancelAction,
  cancel: (client: OutgateClient) => client.cancelAction,
  retry: (client: OutgateClient) => client.retryAction,
} as const;

const OPTIONS = {
  reason: { type: "string" },
  wait: { type: "string" },
  json: { type: "boolean" },
} as const;

/** `outgate approve`, `reject`, `cancel`, `retry`: a decision on one action. */
export function decideCommand(verb: keyof typeof CALLS): Command {
  return {
    usage: `${verb} <id> [--reason <text>] [--wait <seconds>] [--json]`,
    details: `  --reason <text>   why; shown in the timeline
  --wait <seconds>  then wait so long for its end
  --json            JSON also on a terminal`,
    run: withSession(async (args, session) => {
      const { values, positionals } = readArguments(args, OPTIONS, ["<id>"]);
      const { client, io, json, say } = session;
      const waitSeconds = wholeNumber(values.wait, "wait");
      const decision = values.reason === undefined ? {} : { reason: values.reason };
      const decided = await CALLS[verb](client)(positionals[0] ?? "", decision);
      const action = await waitForEnd(client, decided, waitSeconds ?? 0);
      if (values.json === true || !io.isTty) json(action);
      else say(describe(action, session));
      // What was decided is done; only who waits asks how it went on.
      return waitSeconds === undefined ? EXIT.ok : exitCodeOf(action.status, true);
    }),
  };
}
