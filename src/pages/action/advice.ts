import { type ErrorKind, errorKind } from "../../core/outcome.ts";
import type { SeenAction } from "../../receipts/seen-action.ts";

/** Codes after which the same request may succeed. */
const SAME_REQUEST_CODES: ReadonlySet<number> = new Set([408, 409, 429]);

/** Whether the same request would probably fail again, so that it needs an edit before it is sent again. */
export function needsEdit({ status, result }: SeenAction): boolean {
  if (status !== "failed" || result === null) return false;
  const kind = errorKind(result);
  if (kind !== "target") return kind === "dns" || kind === "not_allowed";
  return refusesSame(result.responseCode ?? 0);
}

/** Whether a target that answered with this code would refuse the same request again. */
export function refusesSame(code: number): boolean {
  return code >= 300 && code < 500 && !SAME_REQUEST_CODES.has(code);
}

/** Advice on a kind of failure. Contains only our own words. */
export function adviceOn(kind: ErrorKind, code: number | null): string {
  return kind === "target" ? adviceOnCode(code ?? 0) : ADVICE[kind];
}

const ADVICE: Readonly<Record<Exclude<ErrorKind, "target">, string>> = {
  timed_out: "The target may have received it: check there first, then retry.",
  closed: "The target may have received it: check there first, then retry.",
  interrupted: "The target may have received it: check there first, then retry.",
  refused: "Check that the target runs, then retry.",
  unreachable: "Check that the target can be reached, then retry.",
  dns: "Check the host name in the URL, then edit and resend.",
  certificate: "Correct the target’s certificate, or let this server trust who signed it, then retry.",
  not_allowed: "Choose a target with a public address, or allow this one in the settings of the server.",
  other: "See the timeline for what happened, then edit and resend.",
};

/** Advice on the test of the first steps, which calls this service: many networks don't allow that from inside. */
export function adviceOnOwn(kind: ErrorKind): string {
  const remedy =
    kind === "certificate"
      ? "give it a certificate that the server trusts (NODE_EXTRA_CA_CERTS names your own authority)"
      : "let the server reach it (DNS, firewall, proxy)";
  return `This test calls Outgate at its own address, BASE_URL: ${remedy}, or test with a URL of your own. Calls to other targets need neither.`;
}

const ADVICE_ON_CODE: Readonly<Record<number, string>> = {
  400: "Fix the request, then resend it.",
  401: "Check the credentials in its headers, then edit and resend.",
  403: "Check that the credentials in its headers may do this, then edit and resend.",
  404: "Check the path and the ids in the URL, then edit and resend.",
  405: "Check the method, then edit and resend.",
  408: "The target took too long: check there whether it was received, then retry.",
  409: "It conflicts with the state of the target: check there first.",
  410: "The target no longer has this resource: check the URL, then edit and resend.",
  413: "Send a smaller body.",
  415: "Check its Content-Type, then edit and resend.",
  422: "Fix the fields that the target names, then edit and resend.",
  429: "The target limits its callers: retry it later.",
};

export function adviceOnCode(code: number): string {
  const known = ADVICE_ON_CODE[code];
  if (known !== undefined) return known;
  if (code >= 500) return "The fault is the target’s: retry when it works again.";
  return code >= 300 && code < 400
    ? "Edit the URL to where it redirects, then resend."
    : "Fix the request, then resend it.";
}
