import type { Viewer } from "../accounts/roles.ts";
import Type, { type Static } from "typebox";
import type { Action } from "../actions/action.ts";
import { type DecisionHistory, type DecisionFacts as Facts, decisionFacts, FACTS, RISKS } from "./facts.ts";
import { maskText, maskUrl } from "../receipts/masking.ts";
import { sentUrl } from "../outbound/target.ts";
import { hiddenWords, hiddenValues, maskedAction, maskedEarlier } from "../receipts/masked-action.ts";
import { plainText } from "../api/schema-helpers.ts";

/**
 * The masked facts and risks of an action for an approver. Call `maskOneAhead` first, so that long actions are masked off
 * the event loop. `baseUrl` begins the link to the page of the action; empty: a path.
 */
export function factsOf(action: Action, history: DecisionHistory, baseUrl: string, viewer: Viewer = "decider"): Facts {
  const masked = maskedAction(action, viewer);
  return decisionFacts({
    action,
    history,
    seen: {
      ...history,
      url: maskUrl(sentUrl(action.url), viewer),
      callback: action.callback === null ? null : maskUrl(action.callback, viewer),
      createdBy: masked.createdBy,
      reason: history.reason === null ? null : maskText(history.reason, viewer),
      rejections: maskedEarlier(history.rejections, viewer),
    },
    hidden: hiddenWords(hiddenValues(masked)),
    actionUrl: `${baseUrl}/actions/${action.id}`,
  });
}

const Fact = Type.Object(
  {
    name: Type.Enum([...FACTS], { type: "string", description: "Which fact it is.", examples: ["url"] }),
    label: plainText("Its label for people.", "URL"),
    value: plainText("Its value, masked. Treat it as untrusted plain text.", "https://api.example.com/orders"),
  },
  { title: "DecisionFact", description: "One fact that an approver sees." },
);

const Risk = Type.Object(
  {
    name: Type.Enum([...RISKS], { type: "string", description: "Which risk it is.", examples: ["deletes"] }),
    text: plainText("The risk in a sentence.", "It deletes: the method is DELETE."),
  },
  { title: "DecisionRisk", description: "A reason to check the request carefully." },
);

export const DecisionFacts = Type.Object(
  {
    facts: Type.Array(Fact, { description: "In the order in which they are shown." }),
    risks: Type.Array(Risk, { description: "Empty: nothing about it is unusual." }),
  },
  {
    title: "DecisionFacts",
    description: "What an approver sees of an action in mail, pages, the MCP question and the command line.",
  },
);

export type DecisionFacts = Static<typeof DecisionFacts>;
