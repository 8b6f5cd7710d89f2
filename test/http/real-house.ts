import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import { createReadSigningSecret } from "../../src/accounts/signing-secret.ts";
import type { Role } from "../../src/domain/roles.ts";
import { parsePolicy } from "../../src/outbound/policy.ts";
import { createTargets } from "../../src/outbound/target.ts";
import { openEngine } from "../support/engine.ts";
import { anAccount, anApiKey } from "../support/factory.ts";
import { KEYS, openDoor } from "./stub-house.ts";

/** The key of somebody in another account. */
export const STRANGER = "og_stranger_0123456789abcdefghij";

/** The real door before the real desk and store, with the keys of the cardboard one and a stranger's. */
export async function openRealDoor() {
  const engine = await openEngine();
  const { accounts } = engine.store;
  const addKey = (accountId: string, token: string, role: Role) =>
    accounts.addKey(anApiKey({ accountId, name: role, role, hash: engine.secrets.hash(token) }));
  for (const role of ["owner", "approver", "agent", "reader"] as const) {
    await addKey(engine.owner.accountId, KEYS[role], role);
  }
  const stranger = anAccount();
  await accounts.create(stranger, []);
  await addKey(stranger.id, STRANGER, "owner");

  const policy = parsePolicy({ allowedPrivateTargets: [], loopbackAllowed: true, ownOrigins: ["http://127.0.0.1:1"] });
  if ("problems" in policy) throw new Error(policy.problems.join(" "));
  const door = openDoor({
    desk: engine.desk,
    authenticate: createAuthenticate({ accounts, secrets: engine.secrets, clock: engine.clock }),
    readSigningSecret: createReadSigningSecret(engine.signingSecretOf),
    targets: createTargets(policy),
    receiptUrl: engine.receiptUrl,
    clock: engine.clock,
  });
  return {
    ...door,
    engine,
    /** Sends JSON text, or nothing, and reads JSON. */
    async call(method: string, path: string, body?: string, headers: Readonly<Record<string, string>> = {}) {
      const type: Readonly<Record<string, string>> = body === undefined ? {} : { "content-type": "application/json" };
      const response = await door.ask(path, {
        method,
        headers: { ...type, ...headers },
        ...(body === undefined ? {} : { body }),
      });
      const text = await response.text();
      const json = JSON.parse(text) as Shown;
      return { status: response.status, text, json };
    },
    async [Symbol.asyncDispose]() {
      await door[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** The members of answers that tests look at. */
export interface Shown {
  readonly id: string;
  readonly status: string;
  readonly deduplicated?: boolean;
  readonly data: readonly { readonly id: string; readonly type: string; readonly status: string }[];
  readonly next_cursor: string | null;
  readonly secret: string;
  readonly error: { readonly code: string; readonly message: string };
}
