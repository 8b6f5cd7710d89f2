import { describe, expect, test } from "bun:test";
import type { Action, Result } from "../../src/core/action.ts";
import { actionRow, forRow } from "../../src/pages/action-row.ts";
import { anAction, later, NOON } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

const rowOf = (action: Partial<Action>) => actionRow(maskAction(forRow(anAction(action)), "decider"));

const resultOf = (result: Partial<Result>): Result => ({
  lastError: null,
  errorSource: null,
  responseCode: null,
  responseBody: null,
  responseHeaders: null,
  responseTruncated: false,
  durationMs: null,
  ...result,
});

const refused = (answer: unknown): Result =>
  resultOf({
    lastError: "The target answered with status 422.",
    errorSource: "target",
    responseCode: 422,
    responseBody: JSON.stringify(answer),
    durationMs: 193,
  });

describe("a row of the list", () => {
  test("has agent, request, attempts, and the status and time of the newest attempt", () => {
    const result = refused({ error: { message: "No such charge: 'ch_3N'" } });
    expect(
      rowOf({ status: "failed", url: "https://api.example.com/v1/refunds?x=1", attempts: 3, result }),
    ).toMatchObject({
      createdAt: NOON,
      agent: "test",
      title: null,
      method: "POST",
      host: "api.example.com",
      path: "/v1/refunds?x=1",
      status: "failed",
      code: 422,
      attempts: 3,
      retries: 3,
      durationMs: 193,
      note: { kind: "error", text: "No such charge: 'ch_3N'" },
    });
  });

  test("says what comes next, or what went wrong", () => {
    const at = later(38_000);
    const noteOf = (action: Partial<Action>) => rowOf(action).note;
    const error = refused({ error: "busy" });
    expect(noteOf({ status: "pending", attempts: 2, dueAt: at, result: error })).toEqual({ kind: "retries", at });
    expect(noteOf({ status: "pending", dueAt: at, extras: { runAt: at.getTime() } })).toEqual({ kind: "starts", at });
    expect(noteOf({ status: "pending", dueAt: NOON })).toEqual({ kind: "none" });
    expect(noteOf({ status: "awaiting_approval", approve: true, expiresAt: at })).toEqual({ kind: "expires", at });
    expect(noteOf({ status: "completed", result: resultOf({ responseCode: 200 }) })).toEqual({ kind: "none" });
    expect(noteOf({ status: "failed", result: refused({ ok: false }) })).toEqual({
      kind: "error",
      text: "The target answered with status 422.",
    });
    // What it answered with is no reason where its success broke off.
    const broken = resultOf({
      lastError: "The connection was closed.",
      errorSource: "dispatch",
      responseBody: '"Done."',
    });
    expect(noteOf({ status: "failed", result: broken })).toEqual({ kind: "error", text: "The connection was closed." });
  });
});
