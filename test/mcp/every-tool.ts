import { expect } from "bun:test";
import { actionIn, type Connected, errorIn } from "./clients.ts";

export interface Walk {
  readonly agent: Connected;
  /** Where a call succeeds. */
  readonly target: string;
  /** Lets it answer only when this has resolved. */
  readonly answersAfter: (event: Promise<void>) => void;
  /** As whom decisions of this agent are written down. */
  readonly actor: string;
}

/** Uses every tool once, as an agent whose person approves. */
export async function useEveryTool({ agent, target, answersAfter, actor }: Walk): Promise<void> {
  // A client forgets who listens for progress as soon as it has the answer, also where it reads both at once.
  const heard = Promise.withResolvers<void>();
  answersAfter(heard.promise);
  const args = { url: target, body: { n: 1 }, sync: true, idempotency_key: `an intent of ${actor}` };
  const created = actionIn(await agent.call("create", args, { onprogress: () => heard.resolve() }));
  expect(created).toMatchObject({ status: "completed", attempts: 1, response_code: 200 });
  expect(actionIn(await agent.call("create", args))).toMatchObject({ id: created.id, deduplicated: true });
  expect(actionIn(await agent.call("get", { id: created.id }))).toMatchObject({ id: created.id, status: "completed" });

  const held = actionIn(await agent.call("create", { url: target, approve: true }));
  const page = (await agent.call("list", { status: ["awaiting_approval"] })).structuredContent;
  expect(page).toMatchObject({ data: [{ id: held.id }] });
  expect(actionIn(await agent.call("cancel", { id: held.id }))).toMatchObject({ status: "cancelled" });
  expect(actionIn(await agent.call("retry", { id: held.id }))).toMatchObject({ status: "awaiting_approval" });
  const decided = { decision: "approved", decided_by: actor, decided_via: "elicitation" };
  expect(actionIn(await agent.call("approve", { id: held.id }))).toMatchObject({ approved_by: actor, ...decided });
  expect(agent.questions).toHaveLength(1);
  expect(actionIn(await agent.call("wait", { id: held.id }))).toMatchObject({ status: "completed", ...decided });
  expect(errorIn(await agent.call("approve", { id: held.id })).code).toBe("not_approvable");
}
