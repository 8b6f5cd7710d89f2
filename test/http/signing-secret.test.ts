import { describe, expect, test } from "bun:test";
import { openRealServer, STRANGER } from "./real-server.ts";
import { shared } from "../support/shared.ts";

const ORIGIN = "https://api.example.com";

const ELSEWHERE = "http://other.example:8080";

const app = await shared(openRealServer({ starts: false }));

const read = async (origin = ORIGIN, key?: string): Promise<Readonly<Record<string, unknown>>> => {
  const headers: Readonly<Record<string, string>> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const { text } = await app.call("GET", `/v1/signing-secret?origin=${origin}`, undefined, headers);
  return JSON.parse(text);
};

const rotate = (query = "", body?: string) => app.call("POST", `/v1/signing-secret/rotate${query}`, body);

describe("POST /v1/signing-secret/rotate", () => {
  test("knows an origin in whatever case, with a trailing dot and with the scheme's own port", async () => {
    const { secret } = await read();
    expect(JSON.parse((await rotate("?origin=HTTPS://API.example.com.:443")).text)).toMatchObject({ origin: ORIGIN });
    expect(await read()).toMatchObject({ previous: { secret } });
  });

  test.each([
    ["?origin=", "invalid_query", "origin"],
    ["?origin=https://a.example/x", "invalid_query", "origin"],
    ["?origin=https://a.example&origin=https://b.example", "invalid_query", "origin"],
    ["?orgin=https://a.example", "invalid_query", "orgin"],
    [`?origin=https://${"a".repeat(14_000)}`, "invalid_query", "origin"],
  ])("rotates nothing with %s", async (query, code, field) => {
    const before = [await read(), await read("https://a.example")];
    const refused = await rotate(query);
    expect({ status: refused.status, code: refused.json.error.code }).toEqual({ status: 400, code });
    expect(refused.json.error.details).toMatchObject([{ field }]);
    expect([await read(), await read("https://a.example")]).toEqual(before);
  });

  test("takes no body, so that nobody rotates every origin with one that names a single one", async () => {
    const before = [await read(), await read(ELSEWHERE)];
    const refused = await rotate("", `{"origin":"${ORIGIN}"}`);
    expect(refused.json.error).toMatchObject({ code: "validation_error", details: [{ field: "origin" }] });
    expect([await read(), await read(ELSEWHERE)]).toEqual(before);
    expect((await rotate(`?origin=${ORIGIN}`, "{}")).status).toBe(200);
  });
});

test("GET /v1/signing-origins lists where calls went, without secrets, and only those of the account", async () => {
  await app.call("POST", "/v1/actions", { url: "https://used.example:8443/x", approve: true });
  await rotate("?origin=https://used.example:8443");
  const { text, json } = await app.call("GET", "/v1/signing-origins");
  const rows: readonly unknown[] = json.data;
  expect(rows[0]).toMatchObject({ origin: "https://used.example:8443", for: "calls", rotated_at: expect.any(String) });
  expect(text).not.toContain("whsec_");
  const theirs = await app.call("GET", "/v1/signing-origins", undefined, STRANGER);
  expect(theirs.text).not.toContain("used.example");
});
