import { type Answer, openRealServer, type RealServer, type RealServerOptions } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import type { Store } from "../../src/core/store.ts";
import { expect } from "bun:test";
import { anAuditEntry } from "../support/factory.ts";
import { eventually } from "../support/eventually.ts";
import { type Received, type Script, Target } from "../support/target.ts";

/** What nobody may ever see, in no form. */
export const SECRET = "sk_live_Zx81Qw93vTyu4242";

/** The real service with a target, and a credential for it that the agent's key may use. */
export async function openCredentials(script: Script = 200, options: RealServerOptions = {}) {
  const app = await openRealServer(options);
  const target = new Target(script);
  const { host } = new URL(target.url);
  const call: RealServer["call"] = (...asked) => app.call(...asked);
  const agentId = (await app.authenticate(`Bearer ${KEYS.agent}`)).keyId ?? "";
  const add = (more: object = {}) =>
    call("POST", "/v1/credentials", {
      name: "stripe-live",
      kind: "bearer",
      secret: SECRET,
      hosts: [host],
      keys: [agentId],
      ...more,
    });
  const create = (more: object = {}, key: string = KEYS.agent) =>
    call(
      "POST",
      "/v1/actions",
      { url: `${target.url}v1/charges`, credential: "stripe-live", retries: 1, ...more },
      key,
    );
  return {
    app,
    target,
    host,
    agentId,
    call,
    add,
    create,
    /** Changes the credential in the store alone, as another node does. */
    rewrite: async (change: (stored: Stored) => Changes) => {
      const { store, owner } = app.engine;
      const [stored] = await store.credentials.list(owner.accountId);
      if (stored === undefined) throw new Error("There is no credential.");
      const { accountId } = stored;
      const audit = anAuditEntry({ accountId, kind: "credential_changed", subject: stored.id });
      expect(await store.credentials.change(stored, change(stored), audit)).toBe(true);
    },
    /** Takes away what a test has set up, so that the next one can share the service. */
    async clear() {
      const { data } = (await call("GET", "/v1/credentials")).json;
      for (const { name } of data) await call("DELETE", `/v1/credentials/${String(name)}`);
      await call("DELETE", `/v1/hosts/${host}`);
      await call("PUT", "/v1/rules", { rules: [] });
      target.received.length = 0;
    },
    /** The action at its end. */
    ended: (answer: Answer, key: string = KEYS.agent) =>
      eventually(async () => {
        const action = await call("GET", `/v1/actions/${answer.json.id}?wait=60`, undefined, key);
        return ["completed", "failed", "cancelled"].includes(action.json.status) ? action : null;
      }, "the end of the action"),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await target[Symbol.asyncDispose]();
    },
  };
}

type Stored = Awaited<ReturnType<Store["credentials"]["list"]>>[number];
type Changes = Parameters<Store["credentials"]["change"]>[1];

export type CredentialRig = Awaited<ReturnType<typeof openCredentials>>;

/** A target that sends back what it got. */
export const echoes =
  (form: (authorization: string) => string, init: ResponseInit = {}) =>
  ({ headers }: Received) =>
    new Response(form(headers.get("authorization") ?? ""), init);
