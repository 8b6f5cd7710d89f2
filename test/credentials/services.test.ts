import { describe, expect, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import type { RealServerOptions } from "../http/real-server.ts";
import { addressOfHost } from "../../src/core/addresses.ts";
import type { Caller } from "../../src/core/roles.ts";
import { credentialPlace } from "../../src/credentials/use.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import { STOPPED } from "../../src/outbound/sender.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine, wrapping } from "../support/engine.ts";
import { OTHER_ACCOUNT } from "../support/factory.ts";
import { shared } from "../support/shared.ts";
import { type CredentialRig, openCredentials, SECRET } from "./rig.ts";

const rig = await shared(openCredentials());

const { credentialRequests, credentialService } = rig.app.engine.services;

const callerWith = (key: string): Promise<Caller> => rig.app.authenticate(`Bearer ${key}`);

const codeOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    () => "done",
    (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
  );

const url = `${rig.target.url}v1/charges`;

const body = { name: "granted", kind: "bearer" as const, secret: SECRET, hosts: [rig.host] } satisfies object;

const asked = async (host: string) => {
  const agent = await callerWith(KEYS.agent);
  return (await credentialRequests.ask(agent, { host, reason: "To test." })).request.id;
};

const ownerKey = async (more: object) => {
  const { json } = await rig.call("POST", "/v1/keys", { name: "limited", role: "owner", ...more });
  return callerWith(json.key);
};

test("a credential has its secret from its first moment, whatever the clock does meanwhile", async () => {
  class TickingClock extends FakeClock {
    override now(): Date {
      this.jump(1);
      return super.now();
    }
  }
  await using ticking = await openCredentials(200, { clock: new TickingClock(), starts: false });
  const { json } = await ticking.add();
  expect(json["replaced_at"]).toBe(json["created_at"]);
});

test("none is added where the account has as many as it may", async () => {
  const wrapStore = wrapping("credentials", () => ({ add: async () => "full" }));
  await using full = await openCredentials(200, { starts: false, wrapStore });
  expect(await full.add()).toMatchObject({ status: 400, text: expect.stringContaining("at most") });
});

// Pages and tools call the services without the routes' own checks.
describe("whoever calls the service", () => {
  test("a person asks for nothing", async () => {
    const person = { ...(await callerWith(KEYS.owner)), keyId: null };
    expect(await codeOf(credentialRequests.ask(person, { host: "p.example", reason: "To test." }))).toBe("forbidden");
  });

  test.each([
    ["that calls other hosts alone", { hosts: ["elsewhere.example"] }],
    ["that may not send GET", { methods: ["POST"] }],
  ])("an owner's key tries no credential %s", async (_, more) => {
    await rig.add({ name: "tried" });
    expect(await codeOf(credentialService.test(await ownerKey(more), "tried", url))).toBe("forbidden");
    expect(rig.target.received).toHaveLength(0);
  });

  test.each([
    ["declines", (caller: Caller, id: string) => credentialRequests.decline(caller, id, null)],
    [
      "grants",
      (caller: Caller, id: string, at: number) => credentialRequests.grant(caller, id, { ...body, name: `two-${at}` }),
    ],
  ])("of two who answer a request at once one wins: %s", async (name, answer) => {
    const owner = await callerWith(KEYS.owner);
    const id = await asked(`${name}.example`);
    const answers = await Promise.all([0, 1].map((at) => codeOf(answer(owner, id, at))));
    expect(new Set(answers)).toEqual(new Set(["done", "not_approvable"]));
  });
});

test("a try is not sent where its host is paused while it looks for the address", async () => {
  const sender: Sender = {
    async send(_request, { mayBegin }) {
      await later.call("POST", "/v1/pauses", { host: later.host });
      return mayBegin?.() === false ? STOPPED : { kind: "not_sent", fault: "refused" };
    },
  };
  await using later = await openCredentials(200, { sender });
  await later.add();
  const { status, text } = await later.call("POST", "/v1/credentials/stripe-live/test", {
    url: `${later.target.url}v1/charges`,
  });
  expect([status, text]).toEqual([403, expect.stringContaining("are paused")]);
});

describe("the last step of a send", () => {
  const PUBLIC = addressOfHost("8.8.8.8");

  /** What becomes of a credential that is tried on routes to a public address, over https or not; and how often that was noted. */
  const tried = async (
    areHttps: readonly boolean[],
    options: RealServerOptions = {},
    alter = async (_own: CredentialRig) => {},
  ) => {
    const found: unknown[] = [];
    const sender: Sender = {
      async send(_request, { complete }) {
        for (const isHttps of areHttps) {
          const one = PUBLIC === null ? null : await complete?.({ isHttps, address: PUBLIC });
          found.push(one !== null && one !== undefined && "fault" in one ? one.fault : one);
        }
        return { kind: "not_sent", fault: "refused" };
      },
    };
    await using own = await openCredentials(200, { starts: false, sender, ...options });
    await own.add();
    await alter(own);
    await own.call("POST", "/v1/credentials/stripe-live/test", { url: `${own.target.url}v1/charges` });
    const { json } = await own.call("GET", "/v1/credentials/stripe-live");
    return { found, uses: json["uses_last_week"], echoes: json["echoed_by"] };
  };

  test("adds a secret over plain http to no public address", async () => {
    expect(await tried([false])).toEqual({ found: ["credential_plain"], uses: 0, echoes: [] });
  });

  test("notes one use, however many addresses are tried", async () => {
    const { found, uses, echoes } = await tried([true, true]);
    expect([found[1], uses, echoes]).toEqual([found[0], 1, []]);
    expect(found[0]).toMatchObject({ name: "stripe-live" });
  });

  test("opens no secret that was sealed for another account", async () => {
    const moved = async ({ app, rewrite }: CredentialRig) => {
      const { secrets } = app.engine;
      const sealed = (id: string) => secrets.seal(JSON.stringify([OTHER_ACCOUNT, SECRET]), credentialPlace(id));
      await rewrite(({ id, hint, replacedAt }) => ({ secret: { sealedSecret: sealed(id), hint, replacedAt } }));
    };
    expect(await tried([true], {}, moved)).toMatchObject({ found: ["credential_unreadable"], uses: 0 });
  });

  test("reads a credential again that was changed before its use was noted", async () => {
    const wrapStore = wrapping("credentials", (credentials) => ({
      async use(credential, at, audit) {
        const stored = await credentials.find(credential.accountId, credential.id);
        if (stored !== null)
          await credentials.change(stored, { enabled: false }, { ...audit, kind: "credential_changed" });
        return credentials.use(credential, at, audit);
      },
    }));
    expect(await tried([true], { wrapStore })).toMatchObject({ found: ["credential_disabled"], uses: 0 });
  });
});

test("a secret is checked for the kind that the credential has by then", async () => {
  let replace = async () => {};
  await using engine = await openEngine({
    starts: false,
    wrapStore: wrapping("credentials", (credentials) => ({
      async change(...change) {
        await replace();
        return credentials.change(...change);
      },
    })),
  });
  const { owner } = engine;
  const { credentialService: service } = engine.services;
  const given = { name: "one", secret: "a-secret", hosts: ["a.example"] };
  await service.add(owner, { ...given, kind: "basic", username: "ann" });
  replace = async () => {
    replace = async () => {};
    await service.remove(owner, "one");
    await service.add(owner, { ...given, kind: "bearer" });
  };
  const changed = service.change(owner, "one", { secret: "of two words" });
  expect(await codeOf(changed)).toBe("validation_error");
  expect(await service.find(owner, "one")).toMatchObject({ revision: 1, settings: { kind: "bearer" } });
});
