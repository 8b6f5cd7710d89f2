import type { SigningDesk } from "../../accounts/signing-desk.ts";
import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import {
  checkNoBody,
  checkOrigin,
  RotateQuery,
  rotationJson,
  signingSecretJson,
  SigningSecretQuery,
} from "../../contract/signing-secret.ts";
import { json } from "../answer.ts";
import { readOptionalJson } from "../body.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";

export interface SigningSecretRouteDeps {
  readonly signingDesk: SigningDesk;
}

const READ = compileQuery(SigningSecretQuery);
const ROTATE = compileQuery(RotateQuery);

/** What a target needs to verify our signatures (decisions 6). */
export function signingSecretRoutes({ signingDesk }: SigningSecretRouteDeps): readonly Route[] {
  return [
    routeOf(API.getSigningSecret, async (visit) => {
      const { origin, for: use } = readQuery(visit.search, READ);
      const isShown = visit.request.method !== "HEAD";
      const secret = await signingDesk.read(callerOf(visit), checkOrigin(origin), use, isShown);
      return json(signingSecretJson(secret), 200, { "cache-control": "no-store" });
    }),
    routeOf(API.rotateSigningSecret, async (visit) => {
      const { origin, for: use } = readQuery(visit.search, ROTATE);
      const checked = origin === undefined ? null : checkOrigin(origin);
      checkNoBody(await readOptionalJson(visit));
      return json(rotationJson(await signingDesk.rotate(callerOf(visit), checked, use)));
    }),
  ];
}
