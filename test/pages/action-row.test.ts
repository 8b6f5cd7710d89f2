import { describe, expect, test } from "bun:test";
import type { Action } from "../../src/core/action.ts";
import { ROW_BODY_CHARS_MAX } from "../../src/core/limits.ts";
import { forRow } from "../../src/pages/frame/listed-action.ts";
import { Note } from "../../src/pages/frame/action-row.tsx";
import { actionTable } from "../../src/pages/actions/actions.tsx";
import { renderPart } from "../../src/ui/layout.tsx";
import { textOf } from "../support/forms.ts";
import { anAction, aResult, later, NOON } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

const shown = (action: Partial<Action>) => maskAction(forRow(anAction(action)), "decider");

const rowOf = (action: Partial<Action>) => textOf(renderPart(actionTable([shown(action)], () => null, NOON)));

const noteIn = (action: Partial<Action>) => {
  const note = Note({ action: shown(action), now: NOON });
  return note === null ? "" : textOf(renderPart(note)).trim();
};

const refused = (answer: unknown) =>
  aResult({
    lastError: "The target answered with status 422.",
    errorSource: "target",
    responseCode: 422,
    responseBody: JSON.stringify(answer),
    durationMs: 193,
  });

describe("a row of the list", () => {
  test("has agent, request, attempts, and the status and time of the newest attempt", () => {
    const result = refused({ error: { message: "No such charge: 'ch_3N'" } });
    const failed = { status: "failed", attempts: 3, result } as const;
    const text = rowOf({ ...failed, url: "https://api.example.com/v1/refunds?x=1" });
    expect(text).toContain(
      "12:00:00 test /v1/refunds?x=1 POST api.example.com Failed 422 3 of 3 193 ms No such charge: &#x27;ch_3N&#x27;",
    );
    expect(rowOf({ ...failed, url: "https://api.example.com/v1/refunds", title: "Refund" })).toContain(
      "Refund POST api.example.com /v1/refunds Failed 422",
    );
    // A host says more than a lone slash.
    expect(rowOf({ ...failed, url: "https://api.example.com/" })).toContain("test api.example.com POST Failed 422");
  });

  test("says what comes next, or what went wrong", () => {
    const at = later(38_000);
    const error = refused({ error: "busy" });
    expect(noteIn({ status: "pending", attempts: 2, dueAt: at, result: error })).toBe("again in 38 s");
    expect(noteIn({ status: "pending", dueAt: at, extras: { runAt: at.getTime() } })).toBe("starts in 38 s");
    expect(noteIn({ status: "pending", dueAt: NOON })).toBe("");
    expect(noteIn({ status: "awaiting_approval", approve: true, expiresAt: at })).toBe("expires in 38 s");
    expect(noteIn({ status: "completed", result: aResult() })).toBe("");
    expect(noteIn({ status: "failed", result: refused({ ok: false }) })).toBe("The target answered with status 422.");
    // Masked where it repeats the request, and left out where that is too long to look at.
    const repeated = { status: "failed", body: '{"pin":"canary-pin"}', result: refused("Bad canary-key") } as const;
    expect(noteIn({ ...repeated, headers: { "X-Api-Key": "canary-key" } })).toBe("Bad ••••");
    const long = JSON.stringify("x".repeat(ROW_BODY_CHARS_MAX));
    expect(noteIn({ ...repeated, body: long })).toBe("The target answered with status 422.");
    // What it answered with is no reason where its success broke off.
    const broken = aResult({
      responseCode: null,
      lastError: "The connection was closed.",
      errorSource: "dispatch",
      responseBody: '"Done."',
    });
    expect(noteIn({ status: "failed", result: broken })).toBe("The connection was closed.");
  });
});
