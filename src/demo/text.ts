import type { Paint } from "../observability/terminal.ts";
import { DEMO_PEOPLE } from "./day.ts";
import type { PlayedDay } from "./play.ts";

/** What the demo prints first. */
export function demoBeginning(folder: string): string {
  return `
The demo plays one day of five agents, in about twenty seconds.
Its database is in ${folder}, and is deleted when the demo ends. Your own database and settings are not used.
`;
}

interface DemoFacts {
  readonly url: string;
  readonly folder: string;
  readonly password: string;
  readonly ownerKey: string;
  readonly day: PlayedDay;
}

export function demoText({ url, folder, password, ownerKey, day }: DemoFacts, paint: Paint): string {
  const [owner, approver] = DEMO_PEOPLE;
  return `
${paint(`${day.actions} actions, ${day.waiting} of them awaiting your approval`, "bold")}

  Open       ${paint(`${url}/approvals`, "blue")}
  Log in     ${paint(owner, "bold")}, an owner; or ${approver}, an approver
  Password   ${paint(password, "bold")}
  Owner key  ${ownerKey}

All calls were really made, to a target in this process that plays api.stripe.com and the others. What you approve
goes there too: the demo calls nothing else.

Ctrl-C ends the demo and deletes ${folder}.
`;
}
