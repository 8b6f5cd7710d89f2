import type { OutgateClient } from "../../client/client.ts";
import { describe, describeDecision, exitCodeOf } from "../action-text.ts";
import { readArguments, wholeNumber } from "../arguments.ts";
import { type Command, EXIT, UsageError } from "../command.ts";
import { readLine } from "../input.ts";
import { type Session, withSession } from "../session.ts";
import { waitForEnd } from "../wait.ts";

/** A rejection is the cancel of what awaits approval. */
const CALLS = {
  approve: (client: OutgateClient) => client.approveAction,
  reject: (client: OutgateClient) => client.cancelAction,
  cancel: (client: OutgateClient) => client.cancelAction,
  retry: (client: OutgateClient) => client.retryAction,
} as const;

/** Decisions on what is held: a person at a terminal sees first what they decide on. */
const QUESTIONS = { approve: "Approve this request?", reject: "Reject this request?" } as const;

const DECIDE_OPTIONS = {
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
  const question = verb === "approve" || verb === "reject" ? QUESTIONS[verb] : null;
  return {
    usage: `${verb} <id> [--reason <text>]${verb === "retry" ? "" : " [--run <n>]"} [--wait <seconds>]${question === null ? "" : " [--yes]"} [--json]`,
    details: `  --reason <text>   ${WHY[verb === "retry" ? "retry" : "decision"]}${verb === "retry" ? "" : RUN}
  --wait <seconds>  then wait so long for its end
${question === null ? "" : "  --yes             don't show the request and ask first, as a terminal does\n"}  --json            JSON also on a terminal`,
    run: withSession(async (args, session) => {
      const options = question === null ? DECIDE_OPTIONS : { ...DECIDE_OPTIONS, yes: { type: "boolean" } as const };
      const { values, positionals } = readArguments(args, options, ["<id>"]);
      const named = wholeNumber(values.run, "run");
      if (named !== undefined && verb === "retry") {
        throw new UsageError("retry takes no --run: it begins the next one.");
      }
      const { client, io, json, say } = session;
      const id = positionals[0] ?? "";
      const waitSeconds = wholeNumber(values.wait, "wait");
      const asks = question !== null && io.canAnswer === true && !("yes" in values && values.yes === true);
      const asked = asks ? await askAbout(id, question, session) : null;
      if (asked?.isConfirmed === false) {
        io.err("Nothing was decided.\n");
        return EXIT.failed;
      }
      const said = values.reason === undefined ? {} : { reason: values.reason };
      const run = named ?? asked?.run;
      const decision = run === undefined ? said : { ...said, run };
      const decided = await CALLS[verb](client)(id, decision);
      const action = await waitForEnd(client, decided, waitSeconds ?? 0);
      if (values.json === true || !io.isTty) json(action);
      else say(describe(action, session));
      // What was decided is done; only who waits asks how it went on.
      return waitSeconds === undefined ? EXIT.ok : exitCodeOf(action.status, true);
    }),
  };
}

/** Shows what is decided on, and asks: the answer is about the run that was shown. Where there is nothing to decide the service says so. */
async function askAbout(id: string, question: string, session: Session) {
  const { client, io } = session;
  const action = await client.getAction(id);
  const { run } = action;
  if (action.status !== "awaiting_approval") return { isConfirmed: true, run };
  const facts = await client.getDecisionFacts(id);
  io.err(`${describeDecision(action, facts, session)}${question} [y/N] `);
  const answer = await readLine(io);
  if (answer === null) io.err("\n");
  return { isConfirmed: /^\s*y(?:es)?\s*$/i.test(answer ?? ""), run };
}
