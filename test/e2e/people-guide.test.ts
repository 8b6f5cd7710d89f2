import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { OWNER_KEY, Service } from "../support/service.ts";
import { outgate } from "../cli/outgate.ts";
import { openGuideShell } from "./guide-shell.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const OPERATIONS = await Bun.file(join(import.meta.dir, "../../docs/operations.md")).text();

const GUIDE = await Bun.file(join(import.meta.dir, "../../docs/people.md")).text();

test("the example of the guide invites somebody, and the commands manage them", async () => {
  await using service = new Service();
  const url = await service.ready();
  const [, example = ""] = /```sh\n(curl[\s\S]*?)```/.exec(GUIDE) ?? [];
  const { output } = await openGuideShell(service, url)(example);
  const invited = JSON.parse(output) as { readonly id: string; readonly link: string };
  expect(invited).toMatchObject({ email: "bob@example.com", role: "approver", mailed: false });
  const env = { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY };
  const say = (...args: string[]) => outgate(["people", ...args], { env });

  const listed = JSON.parse((await say("invitations", "--json")).out) as { readonly data: readonly object[] };
  expect(listed.data).toMatchObject([{ id: invited.id, email: "bob@example.com" }]);
  expect(JSON.stringify(listed)).not.toContain("link");
  expect((await say("withdraw", invited.id)).code).toBe(0);
  expect((await fetch(invited.link)).status).toBe(404);

  const second = await say("invite", "bob@example.com", "--role", "owner");
  expect([second.code, second.out.trim()]).toEqual([0, expect.stringMatching(/\/join\/[0-9a-f]{64}$/)]);
  const joined = await fetch(second.out.trim(), {
    method: "POST",
    redirect: "manual",
    headers: { origin: new URL(url).origin },
    body: new URLSearchParams({ password: "a password of Bob" }),
  });
  expect(joined.status).toBe(303);
  const people = JSON.parse((await say("--json")).out) as { readonly data: readonly { readonly id: string }[] };
  const bob = people.data[0]?.id ?? "";
  const lowered = await say("role", bob, "reader");
  expect([lowered.code, lowered.err]).toEqual([1, expect.stringContaining("only owner of the account")]);
  expect((await say("remove", bob)).code).toBe(1);
  expect((await say("role", bob, "agent")).code).toBe(2);
  expect((await say("invite", "x@example.com")).err).toContain("--role is missing");
  expect((await say("remove", "per_nobody")).err).toContain("no such person");
});

test("the examples of keys with limits make such keys", async () => {
  await using service = new Service();
  const url = await service.ready();
  const section = OPERATIONS.slice(OPERATIONS.indexOf("## Keys with limits"));
  const [curl = "", command = ""] = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
  const { output } = await openGuideShell(service, url)(curl);
  const limits = { methods: ["GET", "POST"], daily_actions: 200 };
  expect(JSON.parse(output)).toMatchObject({ ...limits, expires_at: "2035-01-01T00:00:00.000Z" });
  const env = { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY };
  const words = command.trim().split(" ").slice("npm run outgate --".split(" ").length);
  const made = await outgate(words, { env });
  expect([made.code, made.out.trim()]).toEqual([0, expect.stringMatching(/^og_/)]);
  const listed = JSON.parse((await outgate(["keys", "--json"], { env })).out) as { readonly data: readonly object[] };
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  const cli = listed.data.find((key) => Reflect.get(key, "hosts")?.length === 1);
  expect(cli).toMatchObject({ ...limits, hosts: ["api.stripe.com"], expires_at: expect.stringContaining(inDays(90)) });
  const wrong = await outgate(["keys", "create", "x", "--role", "agent", "--method", "HEAD"], { env });
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("methods")]);
});
