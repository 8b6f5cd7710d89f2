import { describe, expect, test } from "bun:test";
import { openStubServer } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openStubServer());

const OURS = /^req_[A-Za-z0-9_-]+$/;

/** The id in the head of the answer, that of the envelope, and what the log says. */
async function ids(given: string | null, path = "/nothing") {
  app.lines.length = 0;
  const response = await app.ask(path, given === null ? {} : { headers: { "x-request-id": given } });
  const text = await response.text();
  const envelope = /"request_id":"([^"]*)"/.exec(text)?.[1] ?? null;
  return { head: response.headers.get("x-request-id"), envelope, log: app.lines[0]?.fields };
}

describe("a request id", () => {
  test("that nobody gave is made, and stands everywhere", async () => {
    const { head, envelope, log } = await ids(null);
    expect(head).toMatch(OURS);
    expect(envelope).toBe(head);
    expect(log?.["request_id"]).toBe(head ?? "");
  });

  test("that the client gave is echoed; one of ours stands in the envelope, and the log has both", async () => {
    const { head, envelope, log } = await ids("my-id.7");
    expect(head).toBe("my-id.7");
    expect(envelope).toMatch(OURS);
    expect(log).toMatchObject({ request_id: "my-id.7", error_id: envelope });
  });

  test("that has our form stands in both", async () => {
    expect(await ids("req_abc")).toMatchObject({ head: "req_abc", envelope: "req_abc" });
  });

  test.each(["a".repeat(129), "a".repeat(300), "two words", "req_<script>", 'quote"', "é", "a, b"])(
    "that may not be echoed is replaced, also in the log: %s",
    async (given) => {
      const { head, envelope, log } = await ids(given);
      expect(head).toMatch(OURS);
      expect(envelope).toBe(head);
      expect(JSON.stringify(log)).not.toContain(given);
    },
  );

  test.each(["Bearer:npm_a1b2C3d4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "req_ghp_a1b2C3d4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"])(
    "in which a client sent its key by mistake is masked in the log, and echoed to the client alone: %s",
    async (given) => {
      const { head, envelope, log } = await ids(given);
      expect(head).toBe(given);
      expect(log?.["request_id"]).toMatch(/••••\((?:npm|GitHub)-token,40-chars,…q7R8\)$/);
      expect(envelope).toMatch(OURS);
      expect(log?.["error_id"]).toBe(envelope ?? "");
      expect(JSON.stringify(log)).not.toContain("a1b2C3d4");
    },
  );

  test("of 128 characters is echoed", async () => {
    const longest = "a".repeat(128);
    expect((await ids(longest)).head).toBe(longest);
  });

  test.each([
    ["/health", "GET", 200],
    ["/health", "HEAD", 200],
    ["/v1/actions", "GET", 200],
    ["/v1/actions", "OPTIONS", 204],
    ["/v1/actions", "DELETE", 405],
    ["/nothing", "GET", 404],
  ])("is on every answer: %s %s %i", async (path, method, status) => {
    const response = await app.ask(path, { method, headers: { "x-request-id": "req_mine" } });
    expect({ status: response.status, id: response.headers.get("x-request-id") }).toEqual({ status, id: "req_mine" });
  });
});
