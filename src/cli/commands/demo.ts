// oxlint-disable-next-line eslint/no-restricted-imports -- a server for the service to call; nothing is called from here
import { createServer, type Server } from "node:http";
import type { OutgateEvent } from "../../client/types.ts";
import type { ActionJson, CreateAction } from "../../actions/schemas.ts";
import { actionText, describeTimeline, exitCodeOf, STATUS_COLOR } from "../action-text.ts";
import type { CliCommand } from "../command.ts";
import { addServiceCommand, hasEnded, openStream, type Session, withSession } from "../session.ts";

/** How many calls the demo's target refuses before it succeeds. */
const FAILURES = 2;

/** `outgate demo`: sends an action that fails at first, and one that needs approval, and explains each step. */
export function addDemo(program: CliCommand): void {
  addServiceCommand(program, "demo", "see it work: a delivery that fails twice, and one that needs approval")
    .addHelpText(
      "after",
      `
Starts a target on this machine that fails twice, sends it an action through the running service, and then an
action that is held until it is approved. Takes about ten seconds.`,
    )
    .runs(withSession(demonstrate));
}

async function demonstrate(session: Session): Promise<number> {
  const target = await startTarget();
  try {
    const delivered = await flakyDelivery(session, target.url);
    const held = await heldDelivery(session, target.url);
    session.say(`\nThe API of this service: ${session.url}/openapi.json`);
    return Math.max(exitCodeOf(delivered.status, true), exitCodeOf(held.status, true));
  } finally {
    target.server.close();
    target.server.closeAllConnections();
  }
}

async function flakyDelivery(session: Session, target: string): Promise<ActionJson> {
  const { say, paint } = session;
  say(paint("1. A target that fails twice", "bold"));
  say(`The target ${target} runs in this command. It answers 503 to the first ${FAILURES} calls, then 200.\n`);
  const action = await deliver(session, { url: `${target}orders`, body: { order: 7 }, retries: FAILURES + 2 });
  say(`\n${actionText(action, session)}`);
  say("Its timeline (outgate get <id> --timeline):");
  say(describeTimeline(await session.client.getTimeline(action.id), session));
  return action;
}

async function heldDelivery(session: Session, target: string): Promise<ActionJson> {
  const { client, say, paint } = session;
  const { key } = await client.getAccount();
  const mayApprove = key.role === "owner" || key.role === "approver";
  say(paint("2. An action that needs approval", "bold"));
  const action = await deliver(
    session,
    { url: `${target}refunds`, body: { amount: 1200 }, approve: true },
    async (held) => {
      if (mayApprove) {
        say(`Now a person approves it: outgate approve ${held.id}`);
        await client.approveAction(held.id, { reason: "approved by the demo" });
      } else {
        say(`A key with the role ${key.role} can't approve. The demo cancels the action: outgate cancel ${held.id}`);
        await client.cancelAction(held.id, { reason: "only a demo" });
      }
    },
  );
  say(`\n${actionText(action, session)}`);
  return mayApprove ? action : { ...action, status: "completed" };
}

/** Creates an action and prints every change until it has ended. */
async function deliver(
  session: Session,
  request: CreateAction,
  onHeld: (action: ActionJson) => Promise<void> = () => Promise.resolve(),
): Promise<ActionJson> {
  const release = new AbortController();
  try {
    const { events, first } = await openStream(session.client, { signal: release.signal });
    const { id } = await session.client.createAction(request, { idempotencyKey: crypto.randomUUID() });
    for (let next = await first; next.done !== true; next = await events.next()) {
      const { data: action } = next.value;
      if (action.id !== id) continue;
      printChange(next.value, session);
      if (action.status === "awaiting_approval") await onHeld(action);
      if (hasEnded(action)) return action;
    }
    return await session.client.getAction(id);
  } finally {
    release.abort();
  }
}

function printChange({ data: action, timestamp }: OutgateEvent, { say, paint }: Session): void {
  const status = paint(action.status.padEnd("awaiting_approval".length), STATUS_COLOR[action.status]);
  say(`  ${paint(timestamp.slice(11, 19), "grey")}  ${status}  ${sentenceOf(action)}`);
}

function sentenceOf(action: ActionJson): string {
  const { status, attempts, last_error: error, next_retry_in_seconds: seconds } = action;
  if (status === "awaiting_approval") return "Stored and held: nothing is sent before a person approves.";
  if (status === "active") return `Attempt ${attempts} of ${action.retries}, recorded before it is sent.`;
  if (status === "pending" && attempts === 0) {
    return action.approved_at === null ? "Stored: it survives a crash from now on." : "Approved by a person.";
  }
  if (status === "pending") return `${error ?? "It failed."} Again in ${seconds ?? 0} s.`;
  if (status === "completed") return `The target answered ${action.response_code}.`;
  return error ?? "It has ended.";
}

interface Target {
  readonly server: Server;
  readonly url: string;
}

/** A server that fails the first calls, whichever action they belong to. */
async function startTarget(): Promise<Target> {
  let calls = 0;
  const server = createServer((_request, response) => {
    calls += 1;
    response.writeHead(calls <= FAILURES ? 503 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(calls <= FAILURES ? { error: "not yet" } : { delivered: true }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { server, url: `http://127.0.0.1:${port}/` };
}
