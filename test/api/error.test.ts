import { describe, expect, test } from "bun:test";
import { compile } from "../../src/api/schema-helpers.ts";
import { ErrorEnvelope } from "../../src/api/error-schema.ts";
import { errorJson, MethodNotAllowed } from "../../src/api/errors.ts";
import { OPERATIONS } from "../support/operations.ts";
import { ERROR_CODES } from "../../src/core/domain-error.ts";

const envelope = compile(ErrorEnvelope);

describe("the error envelope", () => {
  test.each(ERROR_CODES)("holds %s as the schema says", (code) => {
    const text = errorJson({ code, message: "What, which, what to do.", requestId: "req_1", issues: [] });
    expect(JSON.parse(text)).toEqual({ error: { code, message: "What, which, what to do.", request_id: "req_1" } });
    expect(envelope.issues(JSON.parse(text))).toEqual([]);
  });

  test("lists issues under details, each with the code invalid", () => {
    const text = errorJson({
      code: "invalid_sync",
      message: "m",
      requestId: "req_1",
      issues: [{ field: "sync", message: "Not so." }],
    });
    const details = [{ field: "sync", message: "Not so.", code: "invalid" }];
    expect(JSON.parse(text)).toEqual({ error: { code: "invalid_sync", message: "m", request_id: "req_1", details } });
    expect(envelope.issues(JSON.parse(text))).toEqual([]);
  });
});

test("a refused method is told with those of the path, as a sentence", () => {
  expect(new MethodNotAllowed("POST").message).toBe("This path takes POST.");
  expect(new MethodNotAllowed("GET, HEAD, POST").message).toBe("This path takes GET, HEAD or POST.");
});

test("every operation under /v1 asks for a permission, and lists each error once", () => {
  for (const { path, permission, errors } of OPERATIONS) {
    expect(path.startsWith("/v1/")).toBe(permission !== null);
    expect(new Set(errors).size).toBe(errors.length);
  }
});
