import type { OutgateClient } from "../../client/client.ts";
import { describe, exitCodeOf } from "../action-text.ts";
import { readArguments, wholeNumber } from "../arguments.ts";
import { type Command, EXIT, UsageError } from "../command.ts";
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
  run: { type: "string" },
  wait: { type: "string" },
  json: { type: "boolean" },
} as const;

const WHY = {
  decision: "why; shown in the timeline",
  retry: `why; shown to whoever decides. An agent's key has to give it within
                    24 hours of a rejection, and may ask again twice`,
} as const;
const RUN = `
  --run <n>         only in this run; a retry begins the next one`;

/** `outgate approve`, `reject`, `cancel`, `retry`: a decision on one action. */
export function decideCommand(verb: keyof typeof CALLS): Command {
  return {
    usage: `${verb} <id> [--reason <text>]${verb === "retry" ? "" : " [--run <n>]"} [--wait <seconds>] [--json]`,
    details: `  --reason <text>   ${WHY[verb === "retry" ? "retry" : "decision"]}${verb === "retry" ? "" : RUN}
  --wait <seconds>  then wait so long for its end
  --json            JSON also on a terminal`,
    run: withSession(async (args, session) => {
      const { values, positionals } = readArguments(args, OPTIONS, ["<id>"]);
      const run = wholeNumber(values.run, "run");
      if (run !== undefined && verb === "retry") throw new UsageError("retry takes no --run: it begins the next one.");
      const { client, io, json, say } = session;
      const waitSeconds = wholeNumber(values.wait, "wait");
      const said = values.reason === undefined ? {} : { reason: values.reason };
      const decision = run === undefined ? said : { ...said, run };
      const decided = await CALLS[verb](client)(positionals[0] ?? "", decision);
      const action = await waitForEnd(client, decided, waitSeconds ?? 0);
      if (values.json === true || !io.isTty) json(action);
      else say(describe(action, session));
      // What was decided is done; only who waits asks how it went on.
      return waitSeconds === undefined ? EXIT.ok : exitCodeOf(action.status, true);
    }),
  };
}
