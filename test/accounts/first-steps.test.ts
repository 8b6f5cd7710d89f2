import { expect, test } from "bun:test";
import { ENTER_KEY, firstActionCall } from "../../src/api/code-samples.ts";
import { firstKeysText } from "../../src/app/first-keys.ts";
import { createFirstStepService } from "../../src/accounts/first-steps.ts";
import { FIRST_ACTIONS_READ_MAX } from "../../src/core/limits.ts";
import type { FirstStep, NewestAction } from "../../src/core/activity.ts";
import { FakeClock } from "../support/clock.ts";
import { NOON } from "../support/factory.ts";
import { ownerOf } from "../support/owner.ts";
import { openRealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";

const BY_KEY: NewestAction = { createdBy: "key:billing", approvedBy: null };

/** The steps of an account with these newest actions, as Ann sees them. */
function stepsOf(newest: readonly NewestAction[]) {
  const stored: (FirstStep & { readonly personId: string })[] = [];
  const firstSteps = {
    done: async (accountId: string, personId: string) =>
      stored.filter((step) => step.accountId === accountId && ["", personId].includes(step.personId)),
    newest: async () => newest,
    add: async (step: FirstStep & { readonly personId: string }) => void stored.push(step),
    remove: async ({ personId, step }: Pick<FirstStep, "step"> & { readonly personId: string }) => {
      const at = stored.findIndex((one) => one.personId === personId && one.step === step);
      if (at !== -1) stored.splice(at, 1);
    },
  };
  const service = createFirstStepService({ store: { firstSteps }, clock: new FakeClock(NOON) });
  const as = (personId: string) => ({ ...ownerOf("acc_a"), keyId: null, personId });
  const done = async (personId = "ann") => {
    const steps = await service.read(as(personId));
    return steps === null ? null : [...steps.done].toSorted();
  };
  return { done, service, stored, as };
}

test("a step is done as soon as an action says so", async () => {
  expect(await stepsOf([]).done()).toEqual([]);
  expect(await stepsOf([BY_KEY]).done()).toEqual(["action"]);
  expect(await stepsOf([BY_KEY, { ...BY_KEY, approvedBy: "user:ann" }]).done()).toEqual(["action", "approval"]);
  // A key whose name looks like a client of MCP is none.
  expect(await stepsOf([{ ...BY_KEY, createdBy: "key:mcp:x" }]).done()).toEqual(["action"]);
  expect(await stepsOf([{ ...BY_KEY, createdBy: "mcp:x" }]).done()).toEqual(["action", "agent"]);
});

test("a step stays done when its action is gone, and the list ends when all are", async () => {
  const { done, stored, service, as } = stepsOf([]);
  stored.push({ accountId: "acc_a", personId: "", step: "action", at: NOON });
  expect(await done()).toEqual(["action"]);
  expect((await service.read(as("ann")))?.isNew).toBe(false);
  for (const step of ["approval", "agent", "signature"] as const)
    stored.push({ accountId: "acc_a", personId: "", step, at: NOON });
  expect(await done()).toBeNull();
});

test("the list ends for who hides it, and for an account with many actions", async () => {
  const { done, service, as, stored } = stepsOf([BY_KEY]);
  await service.hide(as("ann"));
  expect([await done("ann"), await done("ben")]).toEqual([null, ["action"]]);
  expect(stored).toEqual([{ accountId: "acc_a", personId: "ann", step: "hidden", at: NOON }]);
  expect(await stepsOf(Array.from({ length: FIRST_ACTIONS_READ_MAX }, () => BY_KEY)).done()).toBeNull();
});

test("a new account begins with the list, which ticks itself and can be hidden", async () => {
  await using app = await openRealServer({ starts: false });
  const ann = await signedIn(app);
  const home = async () => (await ann.context("/")).headers.get("location");
  expect(await home()).toBe("/get-started");
  expect(await ann.pageOf("/overview")).toContain("0 of 4 done");
  const { id } = (await app.call("POST", "/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true}')).json;
  expect(await home()).toBe("/approvals");
  expect(await ann.pageOf("/overview")).toContain("1 of 4 done");
  await app.call("POST", `/v1/actions/${id}/approve`);
  expect(await ann.pageOf("/overview")).toContain("2 of 4 done");
  const hidden = await ann.send("/overview/first-steps", await ann.hiddenOf("/overview"));
  expect([hidden.status, hidden.headers.get("location")]).toEqual([303, "/overview"]);
  expect(await ann.pageOf("/overview")).not.toContain("Get started");
});

test("the button of Get started sends one test action, however often its form is sent", async () => {
  await using app = await openRealServer({ starts: false });
  const ann = await signedIn(app);
  const form = await ann.hiddenOf("/get-started");
  const sent = await ann.send("/get-started/test", form);
  expect([sent.status, sent.headers.get("location")]).toEqual([303, expect.stringMatching(/^\/actions\/act_\w+$/)]);
  const again = await ann.send("/get-started/test", form);
  expect(again.headers.get("location")).toBe(sent.headers.get("location"));
  const { data } = JSON.parse((await app.call("GET", "/v1/actions")).text) as { readonly data: readonly object[] };
  expect(data).toMatchObject([{ method: "GET", url: `${app.origin}/health`, created_by: { name: "ann@example.com" } }]);
  // It stays where it is found, also once all is done or hidden.
  await ann.send("/overview/first-steps", await ann.hiddenOf("/overview"));
  expect(await ann.pageOf("/get-started")).toContain("1 of 4 done");
});

test("the first action is the same wherever somebody begins, and its key has one name", async () => {
  await using app = await openRealServer({ starts: false });
  const ann = await signedIn(app);
  const call = firstActionCall(app.origin);
  const made = await ann.send("/keys", { ...(await ann.hiddenOf("/keys/new")), name: "a", role: "agent" });
  const pages = { made: await made.text() };
  for (const path of ["/get-started", "/overview", "/actions"])
    Object.assign(pages, { [path]: await ann.pageOf(path) });
  for (const [name, html] of Object.entries(pages)) {
    const text = html
      .replaceAll(/<[^>]+>/g, "")
      .replaceAll("&quot;", '"')
      .replaceAll("&#39;", "'")
      .replaceAll("&lt;", "<");
    expect(text.includes(call), name).toBe(true);
    expect(text.includes(ENTER_KEY), name).toBe(true);
  }
  const readme = await Bun.file(new URL("../../README.md", import.meta.url)).text();
  const start = firstKeysText(
    { baseUrl: app.origin },
    { ownerKey: "og_owner", agentKey: "og_agent", welcomeToken: null },
  );
  for (const [text, baseUrl] of [
    [readme, "http://127.0.0.1:3000"],
    [start, app.origin],
  ] as const) {
    expect(text).toContain(ENTER_KEY);
    expect(text).toContain(firstActionCall(baseUrl));
    expect(text).not.toMatch(/\b(?:AGENT|OWNER)_KEY\b/);
  }
});

test("a key hides them for everybody, and who manages shows them again", async () => {
  const { done, service, as } = stepsOf([BY_KEY]);
  const key = ownerOf("acc_a");
  await service.hide(key);
  expect([await done("ann"), await done("ben")]).toEqual([null, null]);
  const reader = { ...as("cid"), role: "reader" } as const;
  await service.show(reader);
  expect(await service.read(reader)).toBeNull();
  await service.show(as("ann"));
  expect([await done("ann"), await done("ben")]).toEqual([["action"], ["action"]]);
  await service.hide(as("ben"));
  await service.show(key);
  expect([await done("ann"), await done("ben")]).toEqual([["action"], null]);
});

test("over the API they are read, hidden and shown again; on the page a person shows them again", async () => {
  await using app = await openRealServer({ starts: false });
  const ann = await signedIn(app);
  const steps = async (hidden?: boolean) =>
    JSON.parse(
      (hidden === undefined
        ? await app.call("GET", "/v1/first-steps")
        : await app.call("PATCH", "/v1/first-steps", { hidden })
      ).text,
    );
  await app.call("POST", "/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true}');
  expect(await steps()).toEqual({
    data: [
      { step: "action", done: true, done_at: null },
      ...["approval", "agent", "signature"].map((step) => ({ step, done: false, done_at: null })),
    ],
    hidden: false,
  });
  expect(await steps(true)).toMatchObject({ hidden: true });
  expect(await ann.pageOf("/overview")).not.toContain("Get started");
  expect(await steps(false)).toMatchObject({ hidden: false });
  expect(await ann.pageOf("/overview")).toContain("Get started");
  expect(await ann.pageOf("/settings/login")).not.toContain("the first steps");
  await ann.send("/overview/first-steps", await ann.hiddenOf("/overview"));
  expect(await ann.pageOf("/settings/login")).toContain("the first steps");
  // Only for her: over the API they are what everybody sees.
  expect(await steps()).toMatchObject({ hidden: false });
  const shown = await ann.send("/overview/first-steps", { ...(await ann.hiddenOf("/overview")), hidden: "no" });
  expect(shown.headers.get("location")).toBe("/overview");
  expect(await ann.pageOf("/overview")).toContain("Get started");
});
