import { parseTargetPolicy, type TargetPolicySettings, type TargetPolicy } from "../../src/config/target-policy.ts";
import type { OutboundRequest } from "../../src/outbound/sender.ts";

/** A policy with nothing opened but what is said here. */
export function policyWith(settings: Partial<TargetPolicySettings> = {}): TargetPolicy {
  const policy = parseTargetPolicy({ allowedPrivateTargets: [], loopbackAllowed: false, ownOrigins: [], ...settings });
  if ("problems" in policy) throw new Error(policy.problems.join("\n"));
  return policy;
}

/** As in a development server: loopback and nothing else. */
export const LOCAL = policyWith({ loopbackAllowed: true });

/** A POST with a small body, or what is said here. */
export function requestTo(url: string, more: Partial<OutboundRequest> = {}): OutboundRequest {
  const method = more.method ?? "POST";
  const hasBody = method !== "GET";
  return {
    url,
    method,
    headers: hasBody ? [["content-type", "application/json"]] : [],
    body: hasBody ? '{"a":1}' : null,
    ...more,
  };
}
