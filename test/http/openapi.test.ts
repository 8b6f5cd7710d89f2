import { describe, expect, test } from "bun:test";
import { StoreBusy, StoreUnavailable } from "../../src/core/store.ts";
import { DOCUMENT } from "../support/openapi.ts";
import { broken } from "../support/promised.ts";
import { stubActionService, openStubServer } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openStubServer());

test("GET /openapi.json is the API description, whoever asks", async () => {
  const response = await fetch(`${app.url}/openapi.json`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(await response.json()).toEqual(DOCUMENT);
});

describe("the API description allows what no input brings about:", () => {
  const actionService = (thrown: Error) => stubActionService({ list: () => Promise.reject(thrown) });
  const unready = { probe: () => Promise.reject(new Error("no")) };

  test.each([
    ["429", "/v1/actions", 429, { rateLimitPerSecond: 0.5 }],
    ["500", "/v1/actions", 500, { actionService: actionService(new TypeError("bug")) }],
    ["503", "/v1/actions", 503, { actionService: actionService(new StoreUnavailable("away")) }],
    [
      "503 of a store that has too much to write",
      "/v1/actions",
      503,
      { actionService: actionService(new StoreBusy("full")) },
    ],
    ["503 of readiness", "/ready", 503, unready],
  ])("%s", async (_what, path, status, overrides) => {
    await using other = openStubServer(overrides);
    const response = await other.ask(path);
    expect(response.status).toBe(status);
    const { headers } = response;
    expect(broken({ method: "GET", path, status, headers, text: await response.text() })).toEqual([]);
  });
});

describe("an answer is held against the API description: it is broken by", () => {
  const sound = {
    method: "GET",
    path: "/health",
    status: 200,
    headers: new Headers({ "x-request-id": "req_a", "content-type": "application/json" }),
    text: `{"status":"ok","version":"1","commit":null}`,
  };
  const headers = (more: Readonly<Record<string, string>>) =>
    new Headers({ ...Object.fromEntries(sound.headers), ...more });
  const error = (code: string, more = "") => `{"error":{"code":"${code}","message":"m","request_id":"req_a"${more}}}`;

  test.each([
    ["a status that is not promised", { status: 500, text: error("internal_error") }, "500 is none of 200, 405"],
    ["a member that is not promised", { text: `{"status":"ok","version":"1","commit":null,"more":1}` }, `"more"`],
    ["a header that is not promised", { headers: headers({ "x-powered-by": "x" }) }, "x-powered-by is not promised"],
    ["a header that is missing", { headers: new Headers({ "content-type": "application/json" }) }, "x-request-id"],
    ["the code of another status", { path: "/x", status: 404, text: error("validation_error") }, `"error.code"`],
    ["405 without Allow", { method: "POST", status: 405, text: error("method_not_allowed") }, "header allow"],
  ])("%s", (_what, change, problem) => {
    const problems = broken({ ...sound, ...change });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
  });
});
