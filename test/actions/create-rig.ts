import { createCheckCreate, type CheckedCreate, type CreateInput } from "../../src/actions/create-schema.ts";
import { memberText, orderedMemberText, scanJson } from "../../src/core/json.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { NOON } from "../support/factory.ts";
import { checkTarget } from "../../src/config/target-policy.ts";
import { policyWith } from "../outbound/policies.ts";

/** The check of a create with the real judge of targets, over the text of a body. */
export function rigCreate() {
  const policy = policyWith({ ownOrigins: ["http://127.0.0.1:3000"] });
  const check = createCheckCreate({ checkTarget: (url) => checkTarget(policy, url) });
  return (
    text: string,
    rest: Partial<Pick<CreateInput, "idempotencyKey" | "isKeyHeader" | "role" | "waitSeconds">> = {},
  ): CheckedCreate => {
    const scan = scanJson(new TextEncoder().encode(text));
    if (scan !== "plain" && scan !== "exact") throw new Error(scan);
    const value: unknown = JSON.parse(text);
    const bodyText = (member: "body" | "json" | "form") =>
      (member === "body" ? memberText : orderedMemberText)({ value, text, scan }, member);
    return check({ value, bodyText, idempotencyKey: null, role: "agent", now: NOON, ...rest });
  };
}

export interface Refused {
  readonly code: string;
  readonly fields: readonly string[];
}

/** What was refused and under which code; a create that is let through fails the test. */
export function refusalOf(act: () => unknown): Refused {
  try {
    act();
  } catch (error) {
    if (error instanceof DomainError) return { code: error.code, fields: error.issues.map(({ field }) => field) };
    throw error;
  }
  throw new Error("Nothing was refused.");
}
