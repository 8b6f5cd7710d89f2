import { expect, test } from "bun:test";
import { EXPORT_PAGE_ACTIONS } from "../../src/core/limits.ts";
import { openRealServer } from "./real-server.ts";
import { joined, personOf, SESSION_SECRET, signedIn } from "./signed-in.ts";
import { exchange } from "./wire.ts";

const WAYS = [
  ["removed", "DELETE", undefined],
  ["lowered", "PATCH", { role: "reader" }],
] as const;

test.each(WAYS)("a form whose person is %s while it arrives decides nothing", async (_way, method, body) => {
  await using app = await openRealServer({ starts: false });
  await signedIn(app);
  const approver = await joined(app, "approver");
  const id = await personOf(app, "approver@example.com");
  /** Approves a new action by a form of which half arrives before something else happens. */
  const approve = async (meanwhile: () => Promise<unknown>) => {
    const request = { url: "https://api.example.com/pay", body: {}, approve: true };
    const path = `/actions/${(await app.call("POST", "/v1/actions", request)).json.id}`;
    const fields = { ...(await approver.hiddenOf(path)), session_secret: SESSION_SECRET, decision: "approve" };
    const form = new URLSearchParams(fields).toString();
    const head = [
      `POST ${path} HTTP/1.1`,
      `Host: ${new URL(app.origin).host}`,
      `Origin: ${app.origin}`,
      `Cookie: ${approver.cookie}`,
      "Content-Type: application/x-www-form-urlencoded",
      `Content-Length: ${form.length}`,
      "Connection: close",
    ].join("\r\n");
    const arrive = async () => {
      // Until the head was read, and the session with it.
      await Bun.sleep(100);
      await meanwhile();
    };
    const parts = [`${head}\r\n\r\n${form.slice(0, 50)}`, arrive, form.slice(50)];
    const { text } = await exchange(Number(new URL(app.url).port), parts);
    return [text.slice(9, 12), (await app.call("GET", `/v1${path}`)).json.status];
  };
  expect(await approve(async () => {})).toEqual(["303", "pending"]);
  expect(await approve(() => app.call(method, `/v1/people/${id}`, body))).toEqual(["403", "awaiting_approval"]);
});

test.each(WAYS)("an export breaks off where its person is %s meanwhile", async (_way, method, body) => {
  await using app = await openRealServer({ starts: false });
  await signedIn(app);
  const approver = await joined(app, "approver");
  const id = await personOf(app, "approver@example.com");
  const large = { text: "long words ".repeat(4_000) };
  const count = 2 * EXPORT_PAGE_ACTIONS + 1;
  await Promise.all(Array.from({ length: count }, () => app.engine.create({ body: JSON.stringify(large) })));
  /** How many actions an export has, if something else happens after its first bytes; null: it broke off. */
  const exported = async (meanwhile: () => Promise<unknown>) => {
    const { body: stream, headers } = await approver.context("/actions/export");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    const reader = stream?.getReader();
    const decoder = new TextDecoder();
    let text = decoder.decode((await reader?.read())?.value, { stream: true });
    await meanwhile();
    try {
      for (let step = await reader?.read(); step?.done === false; step = await reader?.read())
        text += decoder.decode(step.value, { stream: true });
    } catch {
      return null;
    }
    return text.trimEnd().split("\n").length;
  };
  expect(await exported(async () => {})).toBe(count);
  expect(await exported(() => app.call(method, `/v1/people/${id}`, body))).toBeNull();
});
