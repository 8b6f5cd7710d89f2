import { describe, expect, test } from "bun:test";
import { compile } from "../../src/api/check.ts";
import { ErrorEnvelopeJson } from "../../src/api/error-schema.ts";
import { errorJson, issuesText, MethodNotAllowed, withField } from "../../src/api/errors.ts";
import { OPERATIONS } from "../support/operations.ts";
import { ERROR_CODES } from "../../src/core/domain-error.ts";

const envelope = compile(ErrorEnvelopeJson);

describe("the error envelope", () => {
  test.each(ERROR_CODES)("holds %s as the schema says", (code) => {
    const text = errorJson(code, "What, which, what to do.", "req_1");
    expect(JSON.parse(text)).toEqual({ error: { code, message: "What, which, what to do.", request_id: "req_1" } });
    expect(envelope.issues(JSON.parse(text))).toEqual([]);
  });

  test("lists issues under details, each with the code invalid", () => {
    const text = errorJson("invalid_sync", "m", "req_1", [{ field: "sync", message: "Not so." }]);
    const details = [{ field: "sync", message: "Not so.", code: "invalid" }];
    expect(JSON.parse(text)).toEqual({ error: { code: "invalid_sync", message: "m", request_id: "req_1", details } });
    expect(envelope.issues(JSON.parse(text))).toEqual([]);
  });

  test("lists as many issues as fit, the first ones, and counts the others", () => {
    const issues = Array.from({ length: 5_000 }, (_, n) => ({
      field: `${n}${"\u0001".repeat(500)}`,
      message: "é".repeat(3_000),
    }));
    const text = errorJson("validation_error", "x".repeat(50_000), "req_1", issues);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16_384);
    const { error } = JSON.parse(text);
    expect(error.details.length).toBeGreaterThan(2);
    expect(error.details.length + error.details_left_out).toBe(5_000);
    expect(error.details[0].field).toStartWith("0");
    expect(envelope.issues(JSON.parse(text))).toEqual([]);
  });

  test("of pages says the same in one text", () => {
    const issues = Array.from({ length: 5_000 }, (_, n) => ({ field: `f${n}`, message: `Wrong ${n}.` }));
    expect(issuesText(issues.slice(0, 2))).toBe("Wrong 0. Wrong 1.");
    const text = issuesText(issues, withField);
    expect(text).toStartWith("f0: Wrong 0. f1: Wrong 1. ");
    expect(text).toMatch(/ And \d{4} more\.$/);
    expect(text.length).toBeLessThan(8_192);
  });
});

test("a refused method is told with those of the path, as a sentence", () => {
  expect(new MethodNotAllowed("POST").message).toBe("This path supports only POST.");
  expect(new MethodNotAllowed("GET, HEAD, POST").message).toBe("This path supports only GET, HEAD or POST.");
});

test("every operation under /v1 asks for a permission, and lists each error once", () => {
  for (const { path, permission, errors } of OPERATIONS) {
    expect(path.startsWith("/v1/")).toBe(permission !== null);
    expect(new Set(errors).size).toBe(errors.length);
  }
});
