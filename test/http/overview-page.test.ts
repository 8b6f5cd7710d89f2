import { afterAll, beforeAll, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";

let app: RealServer;

let ann: Awaited<ReturnType<typeof signedIn>>;

const good = new Target(200);

const bad = new Target(503);

beforeAll(async () => {
  app = await openRealServer();
  ann = await signedIn(app);
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await good[Symbol.asyncDispose]();
  await bad[Symbol.asyncDispose]();
});

const textOf = (html: string) => html.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");

const create = async (url: string, retries: number) => {
  const { id } = (await app.call("POST", "/v1/actions", JSON.stringify({ url, retries }))).json;
  const ends = ["completed", "failed"] as const;
  if (retries === 1) await Promise.race(ends.map((status) => app.engine.saw(id, { status })));
  else await app.engine.saw(id, { status: "pending", attempts: 1 });
};

test("the overview says that there is nothing, before there is something", async () => {
  await using server = await openRealServer();
  const text = textOf(await (await signedIn(server)).pageOf("/overview"));
  for (const words of ["No failed attempts.", "No calls are scheduled.", "Success rate –", "No data yet"]) {
    expect(text).toContain(words);
  }
});

test("the overview shows throughput, success, latency, failing hosts and scheduled retries, each in words too", async () => {
  for (let count = 0; count < 3; count += 1) await create(good.url, 1);
  await create(bad.url, 1);
  await create(bad.url, 3);
  const html = await ann.pageOf("/overview");
  const text = textOf(html);
  const { host } = new URL(bad.url);
  for (const words of [
    "Created 5",
    "Success rate 75 % 3 of 4 finished",
    "Failed 1 5 attempts in all",
    `${host} The target answered with status 503. Just now.`,
    "2 of 2 attempts",
    "1 call scheduled.",
    `${host} 1 action, next in 2 s`,
  ]) {
    expect(text).toContain(words);
  }
  expect(html.match(/<svg[^>]+role="img" aria-label="[^"]+"/g)).toHaveLength(2);
  expect(html).toContain("3 completed and 1 failed in all.");
  // Charts are drawn by attributes: the policy would not let a style in.
  expect(html).not.toMatch(/<script(?! type="module" src="\/assets\/(?:live|session)-)| style=/);
});

test("the overview is the account's of whoever is logged in", async () => {
  const response = await fetch(`${app.url}/overview`, { redirect: "manual" });
  expect(response.headers.get("location")).toBe("/login?next=%2Foverview");
  await using server = await openRealServer();
  const bob = await signedIn(server);
  expect(textOf(await bob.pageOf("/overview"))).toContain("Created 0");
});
