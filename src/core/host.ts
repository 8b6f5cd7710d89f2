import { DomainError } from "./domain-error.ts";
import { normalHost } from "./target.ts";

/**
 * The normal form of a host as actions have it: with its port unless that is the scheme's default. Throws `code` for text
 * that is no host, and for the ports 80 and 443: without a scheme nobody can tell whether they are written, and what is
 * set for a host that no action has would have no effect.
 */
export function checkHost(text: string, code: "validation_error" | "not_found"): string {
  const host = text.includes("*") ? null : normalHost(text.trim());
  if (host !== null && !DEFAULT_PORT.test(host)) return host;
  const message =
    host === null
      ? "Must be a host name or an IP address, with or without a port, like api.example.com or 10.0.0.7:8080."
      : "Leave out the port 443 of https and the port 80 of http, which are the default.";
  if (code === "not_found") throw new DomainError(code, `There is no such host. ${message}`);
  throw new DomainError(code, "The host is not valid.", [{ field: "host", message }]);
}

/** An IPv6 address is in brackets, so that its last part is no port. */
const DEFAULT_PORT = /:(80|443)$/;
