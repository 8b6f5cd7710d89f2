import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Action } from "../../src/core/action.ts";
import { encodeForm } from "../../src/core/body.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";
import { anAction } from "../support/factory.ts";

/** A request as agents make them: nothing in it is a credential. */
interface OrdinaryRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly form?: readonly (readonly [name: string, value: string])[];
  readonly text?: string;
}

/**
 * 600 requests of seventy-five APIs and tools, written down: ids, hashes, UUIDs, slugs, prices, images, IBANs, tracking
 * numbers, page tokens, configurations, mails, scripts.
 */
const REQUESTS = readFileSync(`${import.meta.dir}/ordinary-requests.jsonl`, "utf8")
  .trim()
  .split("\n")
  .map((line): OrdinaryRequest => JSON.parse(line));

function actionOf({ method, url, headers, body, form, text }: OrdinaryRequest): Action {
  const common = { method, url, headers };
  if (form !== undefined) return anAction({ ...common, body: encodeForm(form), extras: { bodyKind: "form" } });
  if (text !== undefined) return anAction({ ...common, body: text, extras: { bodyKind: "text" } });
  return anAction({ ...common, body: body === undefined ? null : JSON.stringify(body) });
}

/** Of the URL the segments and parameters, of headers each, of JSON each that is no list or object, of a form each, of a text the lines. */
function valuesOf({ url, headers, body, form, text = "" }: OrdinaryRequest): number {
  const { pathname, searchParams } = new URL(url);
  const inUrl = pathname.split("/").length - 1 + searchParams.size;
  const lines = text.split("\n").filter((line) => line.trim() !== "").length;
  const inBody = body === undefined ? 0 : scalarsIn(body);
  return inUrl + Object.keys(headers).length + (form?.length ?? 0) + lines + inBody;
}

function scalarsIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((sum: number, member: unknown) => sum + scalarsIn(member), 0);
}

const VALUES = REQUESTS.reduce((sum, request) => sum + valuesOf(request), 0);

const hiddenIn = (requests: readonly OrdinaryRequest[]) =>
  requests.reduce((sum, request) => sum + maskAction(actionOf(request), "decider").hiddenValues, 0);

test("of the values of at least 500 ordinary requests fewer than 1 % are hidden from whoever decides", () => {
  const hidden = hiddenIn(REQUESTS);
  console.log(`ordinary requests: ${hidden} of ${VALUES} values of ${REQUESTS.length} hidden from whoever decides`);
  expect(REQUESTS.length).toBeGreaterThanOrEqual(500);
  expect(new Set(REQUESTS.map(({ url }) => new URL(url).host)).size).toBeGreaterThanOrEqual(50);
  expect(VALUES).toBeGreaterThan(4_000);
  expect(hidden / VALUES).toBeLessThan(0.01);
});

test("the same requests would fail that, if what looks generated were hidden under every name", () => {
  const renamed = REQUESTS.map((request): OrdinaryRequest => {
    const body = JSON.parse(JSON.stringify(request.body ?? {}).replaceAll(/"[a-z_A-Z]+":(?=")/g, '"token":'));
    return request.body === undefined ? request : { ...request, body };
  });
  expect(hiddenIn(renamed) / VALUES).toBeGreaterThan(0.01);
});
