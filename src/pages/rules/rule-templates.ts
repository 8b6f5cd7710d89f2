import { HTTP_METHODS } from "../../core/target.ts";
import { LOOP_BRAKE, type RuleDefinition } from "../../rules/schemas.ts";

interface Template {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  /** What to fill in before it is saved. */
  readonly todo: string;
  readonly rule: RuleDefinition;
}

export const TEMPLATES: readonly Template[] = [
  {
    name: "payments",
    title: "Hold payments above an amount",
    about: "A person approves large payments; small ones are sent at once.",
    todo: "Set the host and the path of your payment API, the member that has the amount, and the limit. A payment without an amount is held.",
    rule: {
      name: "Payments above 1000",
      effect: "hold",
      methods: ["POST"],
      path: "/payments",
      when: "number(action.body.amount) > 1000",
      message: "A person approves payments above 1000.",
    },
  },
  {
    name: "budget",
    title: "Hold payments beyond a budget",
    about: "What is left of a daily sum is sent at once; a person approves what goes beyond.",
    todo: "Set the host and the path of your payment API, the member that has the amount, the sum and your time zone. A payment without an amount is held.",
    rule: {
      name: "10,000 a day",
      effect: "hold",
      methods: ["POST"],
      path: "/payments",
      sum: { member: "body.amount", per: "day", timezone: "Europe/Berlin", limit: 10_000 },
    },
  },
  {
    name: "loops",
    title: "Hold loops",
    about: "An agent that makes the same write again and again waits for a person.",
    todo: "Keep it above rules that allow: no rule after those is asked.",
    rule: LOOP_BRAKE,
  },
  {
    name: "office-hours",
    title: "Hold everything outside office hours",
    about: "At night and on weekends, a person approves every call.",
    todo: "Set your hours and your time zone.",
    rule: {
      name: "Outside office hours",
      effect: "hold",
      when: [
        "now.weekday('Europe/Berlin') in ['sat', 'sun']",
        "|| now.hour('Europe/Berlin') < 8",
        "|| now.hour('Europe/Berlin') >= 18",
      ].join("\n"),
      message: "Outside office hours, a person approves every call.",
    },
  },
  {
    name: "deletes",
    title: "Refuse deletes in production",
    about: "Agents can’t delete anything there, and see why.",
    todo: "Name your production hosts. Without hosts, it refuses every delete.",
    rule: {
      name: "Deletes in production",
      effect: "refuse",
      methods: ["DELETE"],
      message: "Nothing is deleted in production. Ask a person to do it.",
    },
  },
  {
    name: "writes",
    title: "Hold all writes",
    about: "A good last rule: a person approves what no rule before it decides.",
    todo: "Keep it below all other rules: they decide first.",
    rule: {
      name: "All writes",
      effect: "hold",
      methods: HTTP_METHODS.filter((method) => method !== "GET"),
      message: "A person approves every write that no other rule allows.",
    },
  },
];
