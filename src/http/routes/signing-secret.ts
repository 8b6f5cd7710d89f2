import type { SigningService } from "../../accounts/signing-desk.ts";
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
  readonly signingService: SigningService;
}

const READ = compileQuery(SigningSecretQuery);
const ROTATE = compileQuery(RotateQuery);

/** What a target needs to verify our signatures (decisions 6). */
export function signingSecretRoutes({ signingService }: SigningSecretRouteDeps): readonly Route[] {
  return [
    routeOf(API.getSigningSecret, async (context) => {
      const { origin, for: use } = readQuery(context.search, READ);
      const isShown = context.request.method !== "HEAD";
      const secret = await signingService.read(callerOf(context), checkOrigin(origin), use, isShown);
      return json(signingSecretJson(secret), 200, { "cache-control": "no-store" });
    }),
    routeOf(API.rotateSigningSecret, async (context) => {
      const { origin, for: use } = readQuery(context.search, ROTATE);
      const checked = origin === undefined ? null : checkOrigin(origin);
      checkNoBody(await readOptionalJson(context));
      return json(rotationJson(await signingService.rotate(callerOf(context), checked, use)));
    }),
  ];
}
