import type { Viewer } from "../accounts/roles.ts";
import Type, { type Static } from "typebox";
import type { Action } from "../actions/action.ts";
import { type DecisionHistory, type DecisionFacts as Told, decisionFacts, FACTS, RISKS } from "./facts.ts";
import { maskText, maskUrl } from "../receipts/masking.ts";
import { sentUrl } from "../outbound/normal-target.ts";
import { hiddenWords, hiddenValues, maskedAction, maskedEarlier } from "../receipts/masked-action.ts";
import { plainText } from "../api/schema-helpers.ts";

/**
 * What is told to whoever decides on an action, masked. A long one is masked beforehand (`maskOneAhead`).
 * `baseUrl`: where its page is; empty: on the same origin.
 */
export function factsOf(action: Action, history: DecisionHistory, baseUrl: string, viewer: Viewer = "decider"): Told {
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
    label: plainText("What it is called where it is shown.", "URL"),
    value: plainText("What is shown, masked. Treat it as plain text.", "https://api.example.com/orders"),
  },
  { title: "DecisionFact", description: "One line of what is told to whoever decides." },
);

const Risk = Type.Object(
  {
    name: Type.Enum([...RISKS], { type: "string", description: "Which risk it is.", examples: ["deletes"] }),
    text: plainText("The risk in a sentence.", "It deletes: the method is DELETE."),
  },
  { title: "DecisionRisk", description: "Why somebody should look twice." },
);

/** The same over REST. */
export const DecisionFacts = Type.Object(
  {
    facts: Type.Array(Fact, { description: "In the order in which they are shown." }),
    risks: Type.Array(Risk, { description: "Empty: nothing about it is unusual." }),
  },
  {
    title: "DecisionFacts",
    description: "What mail, pages, MCP question and command line tell whoever decides on an action.",
  },
);

export type DecisionFacts = Static<typeof DecisionFacts>;
