import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { Service } from "../support/service.ts";
import { outgateAt } from "../cli/outgate.ts";
import { shared } from "../support/shared.ts";
import { openGuideShell } from "./guide-shell.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const OPERATIONS = await Bun.file(join(import.meta.dir, "../../docs/operations.md")).text();

const GUIDE = await Bun.file(join(import.meta.dir, "../../docs/people.md")).text();

const service = await shared(new Service());
const url = await service.ready();
const run = openGuideShell(service, url);
const say = outgateAt(url);

test("the example of the guide invites somebody, and the commands manage them", async () => {
  const [, example = ""] = /```sh\n(curl[\s\S]*?)```/.exec(GUIDE) ?? [];
  const { output } = await run(example);
  const invited = JSON.parse(output) as { readonly id: string; readonly link: string };
  expect(invited).toMatchObject({ email: "bob@example.com", role: "approver", mailed: false });
  const people = (...args: string[]) => say(["people", ...args]);

  const listed = JSON.parse((await people("invitations", "--json")).out) as { readonly data: readonly object[] };
  expect(listed.data).toMatchObject([{ id: invited.id, email: "bob@example.com" }]);
  expect(JSON.stringify(listed)).not.toContain("link");
  expect((await people("withdraw", invited.id)).code).toBe(0);
  expect((await fetch(invited.link)).status).toBe(404);

  const second = await people("invite", "bob@example.com", "--role", "owner");
  expect([second.code, second.out.trim()]).toEqual([0, expect.stringMatching(/\/join\/[0-9a-f]{64}$/)]);
  const joined = await fetch(second.out.trim(), {
    method: "POST",
    redirect: "manual",
    headers: { origin: new URL(url).origin },
    body: new URLSearchParams({ password: "a password of Bob" }),
  });
  expect(joined.status).toBe(303);
  const members = JSON.parse((await people("--json")).out) as { readonly data: readonly { readonly id: string }[] };
  const bob = members.data[0]?.id ?? "";
  const lowered = await people("role", bob, "reader");
  expect([lowered.code, lowered.err]).toEqual([1, expect.stringContaining("only owner of the account")]);
  expect((await people("remove", bob)).code).toBe(1);
  expect((await people("role", bob, "agent")).code).toBe(2);
  expect((await people("invite", "x@example.com")).err).toContain("--role is missing");
  expect((await people("remove", "per_nobody")).err).toContain("no such person");
});

test("the examples of keys with limits make such keys", async () => {
  const section = OPERATIONS.slice(OPERATIONS.indexOf("## Keys with limits"));
  const [curl = "", command = ""] = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
  const { output } = await run(curl);
  const limits = { methods: ["GET", "POST"], daily_actions: 200 };
  expect(JSON.parse(output)).toMatchObject({ ...limits, expires_at: "2035-01-01T00:00:00.000Z" });
  const words = command.trim().split(" ").slice("npm run outgate --".split(" ").length);
  const made = await say(words);
  expect([made.code, made.out.trim()]).toEqual([0, expect.stringMatching(/^og_/)]);
  const listed = JSON.parse((await say(["keys", "--json"])).out) as { readonly data: readonly object[] };
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  const cli = listed.data.find((key) => Reflect.get(key, "hosts")?.length === 1);
  expect(cli).toMatchObject({ ...limits, hosts: ["api.stripe.com"], expires_at: expect.stringContaining(inDays(90)) });
  const wrong = await say(["keys", "create", "x", "--role", "agent", "--method", "HEAD"]);
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("methods")]);
});
