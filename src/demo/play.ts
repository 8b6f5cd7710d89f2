import type { Action, Approval } from "../client/api.ts";
import type { Caller, MemberRole } from "../core/roles.ts";
import { createClient, type OutgateClient } from "../client/client.ts";
import { OutgateError } from "../client/transport.ts";
import { MINUTE_MS } from "../core/limits.ts";
import type { Paint } from "../observability/terminal.ts";
import type { TravelClock } from "./clock.ts";
import {
  DAY_MINUTES,
  DEMO_AGENTS,
  DEMO_CREDENTIAL,
  DEMO_PEOPLE,
  DEMO_RULES,
  type DemoAgent,
  type DemoPerson,
  demoDay,
  type Step,
} from "./day.ts";
import type { TargetOutage } from "./target.ts";

const DEMO_SETTLE_MS_MAX = 30_000;

export interface DemoService {
  readonly url: string;
  readonly ownerKey: string;
  /** The token of the first person's one-time link. */
  readonly welcomeToken: string;
  /** Answers an API request as a person. */
  readonly answerAs: (caller: Caller, request: Request) => Promise<Response>;
}

interface PlayedDay {
  readonly actions: number;
  readonly waiting: number;
}

/**
 * Plays a day: agents create, people decide, and time passes as soon as all due work is done. The clock must arrive at the time of
 * `machineNow`. Everybody has the same password.
 */
export async function playDay(
  service: DemoService,
  clock: TravelClock,
  machineNow: () => Date,
  outage: TargetOutage,
  password: string,
): Promise<PlayedDay> {
  const owner = createClient({ url: service.url, apiKey: service.ownerKey });
  const [agents, people] = [await createAgents(service, owner), await letPeopleIn(service, owner, password)];
  const billing = (await owner.listKeys()).data.filter(({ name }) => name === "billing-agent");
  await owner.createCredential({ ...DEMO_CREDENTIAL, keys: billing.map(({ id }) => id) });
  for (const rule of DEMO_RULES) await owner.createRule(rule);
  const begunMs = clock.now().getTime();
  const created = new Map<string, string>();

  const take = async (step: Step): Promise<void> => {
    if (step.kind === "outage") outage.isOn = step.isOn;
    else if (step.kind === "create") {
      const { id } = await agents[step.agent].create(step.request);
      created.set(step.name, id);
    } else if (step.kind === "refused") await refused(agents[step.agent].create(step.request));
    else await decide(service, people[step.by], { ...step, id: created.get(step.name) ?? "" });
  };
  const steps = demoDay();
  for (const at of new Set(steps.map((step) => step.at))) {
    await passUntil(new Date(begunMs + at * MINUTE_MS), owner, clock);
    await Promise.all(steps.filter((step) => step.at === at).map(take));
  }
  await passUntil(new Date(begunMs + DAY_MINUTES * MINUTE_MS), owner, clock);
  clock.moveTo(machineNow());
  const { data } = await owner.countActions();
  const countWith = (status: Action["status"]) => data.find((one) => one.status === status)?.count ?? 0;
  return { actions: data.reduce((sum, { count }) => sum + count, 0), waiting: countWith("awaiting_approval") };
}

/** Waits for a create that a rule refuses. */
async function refused(created: Promise<Action>): Promise<void> {
  try {
    await created;
  } catch (error) {
    if (error instanceof OutgateError && error.code === "forbidden") return;
    throw error;
  }
  throw new Error("The demo's service accepted what a rule refuses.");
}

async function createAgents(
  { url }: DemoService,
  owner: OutgateClient,
): Promise<Readonly<Record<DemoAgent, OutgateClient>>> {
  const agentClient = async (name: DemoAgent) => {
    const { key } = await owner.createKey({ name, role: "agent", hold: DEMO_AGENTS[name] });
    return createClient({ url, apiKey: key });
  };
  return {
    "billing-agent": await agentClient("billing-agent"),
    "crm-sync": await agentClient("crm-sync"),
    "support-agent": await agentClient("support-agent"),
    "deploy-bot": await agentClient("deploy-bot"),
    cleanup: await agentClient("cleanup"),
  };
}

/** Lets people in by real links: the one of the first start, and an invitation. */
async function letPeopleIn(
  service: DemoService,
  owner: OutgateClient,
  password: string,
): Promise<Readonly<Record<DemoPerson, Caller>>> {
  const [dana, marcus] = DEMO_PEOPLE;
  await enter(`${service.url}/welcome/${service.welcomeToken}`, { email: dana, password });
  const { link } = await owner.createInvitation({ email: marcus, role: "approver" });
  await enter(link, { password });
  const [{ id: accountId }, { data }] = [await owner.getAccount(), await owner.listPeople()];
  const personCaller = (email: DemoPerson, role: MemberRole): Caller => {
    const person = data.find((one) => one.email === email);
    if (person === undefined) throw new Error(`The demo's service doesn't know ${email}.`);
    return { accountId, keyId: null, keyName: email, personId: person.id, role, hold: "none", actor: `user:${email}` };
  };
  return { [dana]: personCaller(dana, "owner"), [marcus]: personCaller(marcus, "approver") };
}

async function enter(link: string, fields: Readonly<Record<string, string>>): Promise<void> {
  const answer = await fetch(link, {
    method: "POST",
    headers: { origin: new URL(link).origin },
    body: new URLSearchParams(fields),
    redirect: "manual",
  });
  await answer.body?.cancel();
  if (answer.status !== 303) throw new Error(`The demo's service answered ${answer.status} to a one-time link.`);
}

interface DemoDecision {
  readonly id: string;
  readonly verb: "approve" | "cancel";
  readonly reason?: Approval["reason"];
  readonly grant?: Approval["grant"];
}

async function decide({ answerAs }: DemoService, person: Caller, decision: DemoDecision): Promise<void> {
  const { id, verb, reason, grant } = decision;
  const body = JSON.stringify({ reason, grant });
  const headers = { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) };
  const request = new Request(`http://localhost/v1/actions/${id}/${verb}`, { method: "POST", headers, body });
  const answer = await answerAs(person, request);
  if (!answer.ok) throw new Error(`The demo's service refused to ${verb} an action: ${await answer.text()}`);
}

/** Lets time pass, with a stop whenever an action is due. */
async function passUntil(end: Date, owner: OutgateClient, clock: TravelClock): Promise<void> {
  while (true) {
    const due = await nextDue(owner, clock);
    if (due === null || due > end) break;
    clock.moveTo(due);
  }
  clock.moveTo(end);
}

/** Waits until all due work is done. Returns when the next action is due; null if none is. */
async function nextDue(owner: OutgateClient, clock: TravelClock): Promise<Date | null> {
  const sinceMs = clock.monotonicMs();
  while (clock.monotonicMs() - sinceMs < DEMO_SETTLE_MS_MAX) {
    const { data } = await owner.listActions({ status: ["active", "pending"], limit: 100 });
    const times = data.map((action) =>
      action.status === "active" ? 0 : Date.parse(action.next_retry_at ?? action.run_at ?? "") || 0,
    );
    const nextMs = Math.min(...times);
    if (nextMs > clock.now().getTime()) return nextMs === Number.POSITIVE_INFINITY ? null : new Date(nextMs);
    await Bun.sleep(POLL_MS);
  }
  throw new Error("The demo's service doesn't finish what is due. Run the demo again.");
}

const POLL_MS = 3;

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
