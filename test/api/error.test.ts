import { describe, expect, test } from "bun:test";
import { compile } from "../../src/api/schema-helpers.ts";
import { ErrorEnvelope } from "../../src/api/error-schema.ts";
import { errorJson, HTTP_STATUS } from "../../src/api/errors.ts";
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

test("each code has the status of the contract", () => {
  expect(HTTP_STATUS).toEqual({
    missing_body: 400,
    invalid_content_type: 400,
    invalid_request: 400,
    missing_field: 400,
    invalid_url: 400,
    invalid_sync: 400,
    invalid_query: 400,
    validation_error: 400,
    unauthorized: 401,
    invalid_credentials: 401,
    forbidden: 403,
    not_found: 404,
    method_not_allowed: 405,
    payload_too_large: 413,
    rate_limited: 429,
    not_approvable: 409,
    not_cancellable: 409,
    not_retryable: 409,
    too_many_held: 409,
    too_many_jobs: 409,
    email_taken: 409,
    last_owner: 409,
    too_many_keys: 409,
    internal_error: 500,
    unavailable: 503,
  });
});

test("every operation under /v1 asks for a permission, and lists each error once", () => {
  for (const { path, permission, errors } of OPERATIONS) {
    expect(path.startsWith("/v1/")).toBe(permission !== null);
    expect(new Set(errors).size).toBe(errors.length);
  }
});
