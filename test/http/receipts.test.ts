import { describe, expect, test } from "bun:test";
import { ActionJson } from "../../src/api/action-schemas.ts";
import { compile } from "../../src/api/check.ts";
import { ReceiptJson } from "../../src/receipts/receipt.ts";
import { pageHeaders } from "../../src/http/response.ts";
import { SHEET_STYLE } from "../../src/ui/sheet-style.ts";
import { at, OPERATIONS } from "../support/openapi.ts";
import { requestFor } from "../support/engine.ts";
import { broken } from "../support/promised.ts";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer());
const done = await delivered();

const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

const JSON_ONLY = { accept: "application/json" };

/** Without a key, as whoever has the link. */
const context = (path: string, headers: Readonly<Record<string, string>> = HTML, method = "GET") =>
  fetch(app.url + path, { method, headers });

async function created(body: object): Promise<{ readonly id: string; readonly receipt: string }> {
  const { json } = await app.call("POST", "/v1/actions", body);
  const receipt = (await app.call("GET", `/v1/actions/${json.id}`)).text.match(/"receipt_url":"([^"]+)"/)?.[1] ?? "";
  return { id: json.id, receipt };
}

/** One that was held, approved, failed once, and was answered. */
async function delivered() {
  await using target = new Target(503, () => new Response('{"n":12345678901234567890,"session":"canary-answer"}'));
  const { id, receipt } = await created({
    url: `${target.url}orders?page=2&token=canary-query`,
    method: "PUT",
    approve: true,
    headers: { Authorization: "Bearer canary-header", Accept: "application/json" },
    body: { amount: 7, password: "canary-body" },
    dedupe: "order-7",
    reason: "To correct order 7.",
    metadata: { order: "7" },
    callback: "http://127.0.0.1:9/hooks/canary-callback",
    notify: { email: "ann@example.com" },
  });
  await app.call("POST", `/v1/actions/${id}/approve`, '{"reason":"Checked it."}');
  await app.engine.saw(id, { status: "pending", attempts: 1 });
  app.engine.clock.advance(10_000);
  await app.engine.saw(id, { status: "completed" });
  return { id, receipt };
}

test("the API description speaks of every header and form of a receipt, and of what is none", async () => {
  const paths = [done.receipt, "/r/nonsense"];
  const asked = paths.flatMap((path) =>
    [HTML, JSON_ONLY, {}].flatMap((headers) => ["GET", "HEAD", "POST"].map((method) => ({ path, headers, method }))),
  );
  for (const { path, headers, method } of asked) {
    const response = await context(path, headers, method);
    const { status } = response;
    const text = method === "HEAD" ? null : await response.text();
    expect(
      broken({ method, path, status, headers: response.headers, text }),
      JSON.stringify([method, path, headers]),
    ).toEqual([]);
  }
  const promised = at(OPERATIONS.find(({ id }) => id === "getReceipt")?.node, "responses");
  const forms = ["application/json", "text/html"];
  for (const status of ["200", "404", "405", "500", "503"]) {
    expect(Object.keys(at(promised, status, "content"))).toEqual(forms);
    expect(at(promised, status, "headers")).toHaveProperty("Vary");
  }
  expect(at(promised, "200", "headers", "Cache-Control", "schema")["pattern"]).toBe("^(private, )?no-store$");
});

describe("a receipt", () => {
  test("is a page for whoever has the link: status, URL, timing, attempts, request and response", async () => {
    const { id, receipt } = done;
    const response = await context(receipt);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const html = await response.text();
    const text = html.replaceAll(/<style>.*?<\/style>|<[^>]+>/gs, " ").replaceAll(/\s+/g, " ");
    for (const seen of [
      "Completed",
      id,
      "PUT",
      "/orders?page=2",
      "Approved by a key over the API",
      "Checked it.",
      "Attempt 1: answered 503",
      "Attempt 2: answered 200",
      "Next attempt:",
      "12345678901234567890",
      "Status 200",
      "UTC",
    ]) {
      expect(text).toContain(seen);
    }
    expect(text).toMatch(/&quot;amount&quot;[:\s]+7/);
    expect(html).toContain('<q class="reason">');
  });

  test("is the action for programs, masked, with its timeline, and leads nowhere", async () => {
    const { id, receipt } = done;
    const response = await context(receipt, JSON_ONLY);
    expect(response.headers.get("content-type")).toBe("application/json");
    const text = await response.text();
    const shown = JSON.parse(text);
    expect(compile(ActionJson).issues(shown)).toEqual([]);
    // As the API description has it, with no member more.
    expect(compile({ ...ReceiptJson, additionalProperties: false }).issues(shown)).toEqual([]);
    expect(shown).toMatchObject({
      id,
      status: "completed",
      method: "PUT",
      headers: { Authorization: "••••", Accept: "••••" },
      body: { amount: 7, password: "••••(password,11-chars)" },
      attempts: 2,
      approved_by: "key",
      callback: null,
      receipt_url: null,
    });
    expect(text).toContain('"n":12345678901234567890');
    const types = shown.timeline.map(({ type }: { type: string }) => type);
    expect(types.filter((type: string) => type !== "callback" && type !== "mail")).toEqual(
      "created held approved started attempt started attempt completed".split(" "),
    );
    expect(shown.timeline.find(({ type }: { type: string }) => type === "approved")).toEqual({
      at: expect.any(String),
      run: 1,
      type: "approved",
      status: "pending",
      actor: "key",
      reason: "Checked it.",
    });
    for (const hidden of ["acc_", "key_", "/r/", "/a/", "hooks", '"seq"', "hidden_values"])
      expect(text).not.toContain(hidden);
  });

  test.each(["email", "user", "key", "mcp"] as const)(
    "names whoever decided by kind, %s, without an address or a name; of requesters only a key's name is shown",
    async (kind) => {
      const { owner, actionService } = app.engine;
      const caller = { ...owner, actor: `${kind}:dana@private.example` } as const;
      const request = requestFor({ url: "http://127.0.0.1:9/", approve: true, retries: 1 });
      for (const type of ["approved", "rejected"] as const) {
        const { id } = (await actionService.create(caller, request)).action;
        await (type === "approved" ? actionService.approve(caller, id, null) : actionService.cancel(caller, id, null));
        const { text } = await app.call("GET", `/v1/actions/${id}`);
        const receipt = /"receipt_url":"([^"]+)"/.exec(text)?.[1] ?? "";
        const [page, json] = [await (await context(receipt)).text(), await (await context(receipt, JSON_ONLY)).text()];
        const { timeline, approved_by: approvedBy, created_by: createdBy } = JSON.parse(json);
        const isKey = kind === "key" || kind === "mcp";
        expect(timeline).toContainEqual(expect.objectContaining({ type, actor: kind }));
        expect(approvedBy).toBe(type === "approved" ? kind : null);
        expect(createdBy).toEqual({ id: null, name: isKey ? "dana@private.example" : kind });
        // Where it stands: as the requester, in the facts and in the timeline, both on the page and in the JSON.
        expect((page + json).split("dana@private.example")).toHaveLength(isKey ? 5 : 1);
        expect(page).toContain(isKey ? "a key" : "a person");
      }
    },
  );

  test("is what was asked for by name: a page, unless JSON is wanted at least as much", async () => {
    const { receipt } = done;
    const typeOf = async (accept: string) => (await context(receipt, { accept })).headers.get("content-type");
    for (const accept of ["*/*", "", "text/html", "text/html,application/json;q=0.9", "application/json;q=0"]) {
      expect(await typeOf(accept), accept).toBe("text/html; charset=utf-8");
    }
    for (const accept of ["application/json", "application/json, */*;q=0.1", "text/html;q=0.5,Application/JSON"]) {
      expect(await typeOf(accept), accept).toBe("application/json");
    }
  });

  test("carries the headers of a page that a token opens, as a page and as JSON, with GET and HEAD", async () => {
    const { receipt } = done;
    for (const response of [
      await context(receipt),
      await context(receipt, HTML, "HEAD"),
      await context(receipt, JSON_ONLY),
    ]) {
      expect(Object.fromEntries(response.headers)).toMatchObject({ ...pageHeaders("receipt"), vary: "Accept" });
      expect(response.headers.get("cross-origin-opener-policy")).toBeNull();
    }
    expect((await context(receipt)).headers.get("content-security-policy")).toBe(
      `default-src 'none'; style-src 'sha256-${SHEET_STYLE.sha256}'; img-src data:; base-uri 'none'; ` +
        "frame-ancestors 'none'; form-action 'none'; sandbox",
    );
  });

  test("reloads itself until the action has ended, and only then is sandboxed: a sandboxed page can't", async () => {
    const { id, receipt } = await created({ url: "http://127.0.0.1:9/", approve: true, retries: 1 });
    const { approve } = await app.linksOf(id);
    const seen = async (path: string, headers = HTML) => {
      const response = await context(path, headers);
      const policy = response.headers.get("content-security-policy") ?? "";
      return { refresh: response.headers.get("refresh"), isSandboxed: policy.endsWith("; sandbox") };
    };
    expect(await seen(receipt)).toEqual({ refresh: "2", isSandboxed: false });
    const page = await context(receipt);
    expect(page.headers.get("content-security-policy")).toContain("form-action 'none'");
    expect(await page.text()).toContain("This page loads again every 2 s");
    // Programs ask when they like, and a form must not be reloaded under somebody's hands.
    expect((await context(receipt, JSON_ONLY)).headers.get("refresh")).toBeNull();
    expect((await context(approve)).headers.get("refresh")).toBeNull();
    await app.call("POST", `/v1/actions/${id}/approve`, "{}");
    await app.engine.saw(id, { status: "failed" });
    expect(await seen(receipt)).toEqual({ refresh: null, isSandboxed: true });
    expect(await (await context(receipt)).text()).not.toContain("loads again");
  });

  test("stops reloading where its reader asks for that, under the same link and without script (WCAG 2.2.2)", async () => {
    const { id, receipt } = await created({ url: "http://127.0.0.1:9/", approve: true, retries: 1 });
    const seen = async (query: string) => {
      const response = await context(receipt + query);
      const text = await response.text();
      const links = [...text.matchAll(/<a href="(\?[^"]*)">([^<]*)</g)].map(([, href, name]) => `${href} ${name}`);
      return { refresh: response.headers.get("refresh"), links, script: text.includes("<script") };
    };
    const on = { refresh: "2", links: ["?reload=off Stop reloading"], script: false };
    const off = { refresh: null, links: ["?reload=on Reload automatically"], script: false };
    expect(await seen("")).toEqual(on);
    expect(await seen("?reload=off")).toEqual(off);
    expect(await seen("?reload=on")).toEqual(on);
    expect(await seen("?utm_source=mail&reload=%3Cb%3E")).toEqual(on);
    await app.call("POST", `/v1/actions/${id}/cancel`, "{}");
    expect(await seen("?reload=off")).toEqual({ refresh: null, links: [], script: false });
  });
});

describe("a token that opens nothing", () => {
  const words = async (path: string, headers?: Readonly<Record<string, string>>) => {
    const response = await context(path, headers);
    expect(response.status).toBe(404);
    expect(response.headers.get("vary")).toBe("Accept");
    return (await response.text()).replaceAll(/req_[0-9a-z]+/g, "req");
  };

  test("B19 is the same page, whatever is wrong with it, for receipts and approval links alike", async () => {
    const { receipt } = await created({ url: "http://127.0.0.1:9/", approve: true });
    const { id } = await created({ url: "http://127.0.0.1:9/", approve: true });
    const { approve } = await app.linksOf(id);
    const page = await words("/r/nonsense");
    expect(page).toContain("This link doesn’t work");
    const changed = (path: string) => path.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    const paths = [
      changed(receipt),
      receipt.slice(0, -1),
      "/r/%00",
      "/r/..%2f..%2fetc%2fpasswd",
      `/r/${"a".repeat(4_000)}`,
      changed(approve),
      approve.slice(0, -1),
      approve.replace("-a1-", "-r1-"),
      approve.replace("-a1-", "-a2-"),
      receipt.replace("/r/", "/a/"),
      approve.replace("/a/", "/r/"),
      "/a/nonsense",
      "/a/%ff",
    ];
    for (const path of paths) expect(await words(path), path).toEqual(page);
    const accepts = [{ accept: "*/*" }, { accept: "image/png" }];
    for (const headers of accepts) expect(await words("/r/nonsense", headers)).toBe(page);
  });
});
