import { expect, test } from "bun:test";
import { maskHeaders, maskJsonText, maskUrl } from "../../src/receipts/masking.ts";
import type { Viewer } from "../../src/accounts/roles.ts";
import { ordinaryRequests, valuesOf } from "../support/ordinary-requests.ts";

const REQUESTS = 500;

function hiddenFrom(viewer: Viewer): { readonly hidden: number; readonly values: number } {
  const tally = { hidden: 0 };
  let values = 0;
  for (const request of ordinaryRequests(REQUESTS)) {
    values += valuesOf(request);
    maskUrl(request.url, viewer, tally);
    maskHeaders(request.headers, viewer, tally);
    maskJsonText(JSON.stringify(request.body), viewer, tally);
  }
  return { hidden: tally.hidden, values };
}

test("of the values of 500 ordinary requests fewer than 1 % are hidden from whoever decides", () => {
  const { hidden, values } = hiddenFrom("decider");
  console.log(`ordinary requests: ${hidden} of ${values} values hidden from whoever decides`);
  expect(values).toBeGreaterThan(4_000);
  expect(hidden / values).toBeLessThan(0.01);
});
