import { describeTlsFailure, tlsFailureOf } from "../../src/domain/tls.ts";
import { isObject } from "./message.ts";

/** An error as the line that answers a request. */
export function errorLine(id: string | number | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}

/** What the service refused a request with, in its own words where it has said some. */
export function faultOf(status: number, body: unknown): string {
  const error = isObject(body) ? body["error"] : null;
  const message = isObject(error) ? error["message"] : null;
  if (typeof message !== "string") return `Outgate answered with status ${status}.`;
  return status === 401 ? `Outgate did not take the key in OUTGATE_API_KEY. ${message}` : message;
}

/** Why nothing came back. The words of a library are nothing for a person. */
export function sentenceOf(error: unknown): string {
  const code = codeOf(error) ?? codeOf(error instanceof Error ? error.cause : null);
  if (code === "ECONNREFUSED" || code === "ConnectionRefused") {
    return "Outgate does not answer at OUTGATE_URL: start it there, or correct the address.";
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "The host name in OUTGATE_URL can't be resolved.";
  const failure = tlsFailureOf(error);
  if (failure !== null) return describeTlsFailure(failure, "OUTGATE_URL");
  return "The connection to Outgate broke. Repeat the call with the same idempotency_key.";
}

function codeOf(error: unknown): string | null {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : null;
}
