import { expect, test } from "bun:test";
import { maskHeaders, maskJsonText, maskUrl } from "../../src/receipts/masking.ts";
import { Masking } from "../../src/receipts/mask-rules.ts";
import type { Viewer } from "../../src/accounts/roles.ts";
import { ordinaryRequests, valuesOf } from "../support/ordinary-requests.ts";

const REQUESTS = 500;

function hiddenFrom(viewer: Viewer): { readonly hidden: number; readonly values: number } {
  const masking = new Masking(viewer);
  let values = 0;
  for (const request of ordinaryRequests(REQUESTS)) {
    values += valuesOf(request);
    maskUrl(request.url, masking);
    maskHeaders(request.headers, masking);
    maskJsonText(JSON.stringify(request.body), masking);
  }
  return { hidden: masking.hidden, values };
}

test("of the values of 500 ordinary requests fewer than 1 % are hidden from whoever decides", () => {
  const { hidden, values } = hiddenFrom("decider");
  console.log(`ordinary requests: ${hidden} of ${values} values hidden from whoever decides`);
  expect(values).toBeGreaterThan(4_000);
  expect(hidden / values).toBeLessThan(0.01);
});
