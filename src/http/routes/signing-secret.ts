import type { createReadSigningSecret } from "../../accounts/signing-secret.ts";
import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import { checkOrigin, SigningSecretQuery } from "../../contract/signing-secret.ts";
import { json } from "../answer.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";

export interface SigningSecretRouteDeps {
  readonly readSigningSecret: ReturnType<typeof createReadSigningSecret>;
}

const QUERY = compileQuery(SigningSecretQuery);

/** What a target needs to verify our signatures (decisions 6). */
export function signingSecretRoutes({ readSigningSecret }: SigningSecretRouteDeps): readonly Route[] {
  return [
    routeOf(API.getSigningSecret, async (visit) => {
      const origin = checkOrigin(readQuery(visit.search, QUERY).origin);
      const secret = await readSigningSecret(callerOf(visit), origin);
      return json(JSON.stringify(secret), 200, { "cache-control": "no-store" });
    }),
  ];
}
