import { expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { textOf } from "../support/forms.ts";
import { signedIn } from "./signed-in.ts";
import { shared } from "../support/shared.ts";

const good = await shared(new Target(200));

const bad = await shared(new Target(503));

const app = await shared(openRealServer());
const ann = await signedIn(app);

const create = async (url: string, retries: number) => {
  const { id } = (await app.call("POST", "/v1/actions", { url, retries })).json;
  const ends = ["completed", "failed"] as const;
  if (retries === 1) await Promise.race(ends.map((status) => app.engine.saw(id, { status })));
  else await app.engine.saw(id, { status: "pending", attempts: 1 });
};

test("the overview says that there is nothing, before there is something", async () => {
  await using server = await openRealServer();
  const ben = await signedIn(server);
  await ben.send("/overview/first-steps", await ben.hiddenOf("/overview"));
  const text = textOf(await ben.pageOf("/overview"));
  for (const words of [
    "No failed actions.",
    "No calls are scheduled.",
    "Success –",
    "No action finished in this range.",
  ]) {
    expect(text).toContain(words);
  }
  for (const query of ["range=2h", "view=list", "since=1"]) {
    expect((await ben.context(`/overview?${query}`)).status).toBe(400);
  }
});

test("the overview shows outcomes, success, latency, failing hosts and scheduled retries, in every range", async () => {
  for (let count = 0; count < 3; count += 1) await create(good.url, 1);
  await create(bad.url, 1);
  await create(bad.url, 3);
  const { host } = new URL(bad.url);
  for (const query of ["", "?range=1h", "?range=24h", "?range=7d", "?range=30d", "?range="]) {
    const html = await ann.pageOf(`/overview${query}`);
    const text = textOf(html);
    for (const words of [
      "Created 5 5 attempts",
      "Success 75 % 1 of 4 failed",
      `${host} Last 24 hours: actions failed in 1 hour, no calls in 23 1 of 1 action The target answered with status 503. just now`,
      "1 call scheduled.",
      `${host} 1 next in 2 s`,
      "owner 5 75 % 1",
    ]) {
      expect(text).toContain(words);
    }
    expect(html.match(/<svg[^>]+role="img" aria-label="[^"]+"/g)).toHaveLength(2);
    expect(html).toContain("3 completed, 1 failed.");
    // Charts are drawn by attributes: the policy would not let a style in.
    expect(html).not.toContain(" style=");
  }
  const { json } = await app.call("GET", "/v1/overview?range=7d");
  const overview = json as never as {
    range: string;
    hosts: { host: string; failed_attempts: number }[];
    failing_hosts: object[];
    agents: object[];
  };
  expect(overview).toMatchObject({ range: "7d", slot_seconds: 10_800, counted_until: null, other_hosts: null });
  expect(overview.hosts.find((one) => one.host === host)?.failed_attempts).toBe(2);
  expect(overview.failing_hosts).toMatchObject([{ host, completed: 0, failed: 1, attempts: 2, failed_attempts: 2 }]);
  expect(overview.agents).toMatchObject([{ name: "owner", created: 5, failed: 1 }]);
  expect(await app.call("GET", "/v1/overview?range=2d")).toMatchObject({ status: 400 });
});

test("the overview shows a reader no more than the page of an action does, and a decider no less", async () => {
  await using server = await openRealServer();
  const keyOf = async (name: string, role: string) => {
    const made = (await server.call("POST", "/v1/keys", { name, role })).json as unknown;
    return (made as { readonly key: string }).key;
  };
  const agent = await keyOf("billing token=rose33", "agent");
  const { id } = (await server.call("POST", "/v1/actions", { url: good.url, approve: true }, agent)).json;
  for (const role of ["reader", "approver"]) {
    const key = await keyOf(role, role);
    const { json } = await server.call("GET", "/v1/overview", undefined, key);
    const action = await server.call("GET", `/v1/actions/${id}`, undefined, key);
    const [shown] = (json as never as { agents: { name: string }[] }).agents;
    expect(shown?.name).toBe((action.json as never as { created_by: { name: string } }).created_by.name);
    expect(shown?.name.includes("rose33")).toBe(role === "approver");
  }
});
