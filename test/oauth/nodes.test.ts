import { describe, expect, test } from "bun:test";
import { sharedReads } from "../../src/app/housekeeping.ts";
import { SHARED_FRESH_MS } from "../../src/core/limits.ts";
import type { Store } from "../../src/core/store.ts";
import { openEngine, wrapping } from "../support/engine.ts";
import { anAuditEntry, aPause } from "../support/factory.ts";
import { dropDatabase, hasPostgres } from "../support/postgres.ts";
import { createMigrated } from "../support/postgres-store.ts";
import { addSigned, connect, exchange, openRig, REDIRECT, SIGNED_ID } from "./rig.ts";

/** The rig, and the services of another node on the same database, which reads the same documents. */
async function openTwo(wrapStore: (store: Store) => Store = (store) => store) {
  const url = await createMigrated();
  const env = { DATABASE_URL: url, SECRET_KEY: "5f".repeat(32), OAUTH: "on" };
  const rig = await openRig({ env, wrapStore });
  const other = await openEngine({ env, settings: { baseUrl: rig.url }, sender: rig.sender, wrapStore });
  const type = { "content-type": "application/x-www-form-urlencoded" };
  return {
    rig,
    other,
    /** What the other node answers at its token endpoint. */
    async tokenFrom(fields: Readonly<Record<string, string>>) {
      const answer = await other.services.oauth?.answerClient(
        "/oauth/token",
        type,
        String(new URLSearchParams(fields)),
      );
      const { error } = JSON.parse(answer?.body ?? "{}") as { readonly error?: string };
      return { status: answer?.status, error };
    },
    /** What the other node says of a token for /mcp. */
    calls: (token: string) =>
      other.services.authenticate(`Bearer ${token}`, true).then(
        () => "authenticated",
        (error: unknown) => String(error),
      ),
    async [Symbol.asyncDispose]() {
      await other[Symbol.asyncDispose]();
      await rig[Symbol.asyncDispose]();
      await dropDatabase(url);
    },
  };
}

/** Lets two that find nothing in the store go on together, once it is set. */
function meetingPoint() {
  let waiting: (() => void)[] | null = null;
  return {
    set: () => void (waiting = []),
    wrapStore: wrapping("oauth", (oauth) => ({
      async find(id) {
        const found = await oauth.find(id);
        if (found !== null || waiting === null) return found;
        const met = Promise.withResolvers<void>();
        waiting.push(met.resolve);
        if (waiting.length === 2) {
          for (const goOn of waiting) goOn();
          waiting = null;
        }
        await met.promise;
        return null;
      },
    })),
  };
}

describe("an assertion that two requests in flight bring", () => {
  test("is taken once", async () => {
    const { set, wrapStore } = meetingPoint();
    await using rig = await openRig({ wrapStore });
    const { assertion, code } = await addSigned(rig);
    const [one, other] = [await code(), await code()];
    const proof = { client_id: SIGNED_ID, ...(await assertion()) };
    set();
    const answers = await Promise.all([one, other].map((it) => exchange(rig, it.code, it.verifier, proof)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 401]));
    expect(answers.flatMap(({ json }) => json.error ?? [])).toEqual(["invalid_client"]);
  });

  test.skipIf(!hasPostgres)("is taken once of two nodes", async () => {
    const { set, wrapStore } = meetingPoint();
    await using nodes = await openTwo(wrapStore);
    const { rig } = nodes;
    const { assertion, code } = await addSigned(rig);
    const [one, other] = [await code(), await code()];
    const proof = { client_id: SIGNED_ID, ...(await assertion()) };
    set();
    const [here, there] = await Promise.all([
      exchange(rig, one.code, one.verifier, proof),
      nodes.tokenFrom({
        grant_type: "authorization_code",
        code: other.code,
        code_verifier: other.verifier,
        redirect_uri: REDIRECT,
        ...proof,
      }),
    ]);
    expect(new Set([here.status, there.status])).toEqual(new Set([200, 401]));
    expect([here.json.error, there.error].filter((error) => error !== undefined)).toEqual(["invalid_client"]);
  });
});

describe.skipIf(!hasPostgres)("a token, on another node", () => {
  test("is worth nothing within five seconds of the end of its key, its person or its account", async () => {
    await using nodes = await openTwo();
    const { rig, other, calls } = nodes;
    const bob = await rig.join("owner");
    const [{ tokens: ofKey }, { tokens: ofBob }, { tokens: ofAccount }] = [
      await connect(rig),
      await connect(rig, {}, bob.cookie),
      await connect(rig),
    ];
    const all = [ofKey, ofBob, ofAccount];
    const statuses = () => Promise.all(all.map(({ access_token }) => calls(access_token)));
    expect(await statuses()).toEqual(["authenticated", "authenticated", "authenticated"]);

    const { owner, services, store } = rig.engine;
    const { accountId } = owner;
    const first = await services.authenticate(`Bearer ${ofKey.access_token}`, true);
    await services.keyService.revoke(owner, first.keyId ?? "");
    await rig.teamService.remove(owner, bob.personId);
    const passed = async () => {
      other.clock.advance(SHARED_FRESH_MS);
      await Promise.all(Object.values(sharedReads(other.services)).map((readAgain) => readAgain()));
    };
    await passed();
    const [key, person, kept] = await statuses();
    expect([key, person].map((said) => said?.includes("key"))).toEqual([true, true]);
    expect(kept).toBe("authenticated");

    await store.pauses.pause(aPause({ accountId, kind: "sign_up", subject: accountId }), anAuditEntry({ accountId }));
    await passed();
    expect(await calls(ofAccount.access_token)).toContain("stopped");
    // Nor do they get new ones there.
    for (const { refresh_token } of all) {
      const fields = {
        grant_type: "refresh_token",
        refresh_token,
        client_id: "https://client.example/oauth/client.json",
      };
      expect(await nodes.tokenFrom(fields)).toEqual({ status: 400, error: "invalid_grant" });
    }
  });
});
