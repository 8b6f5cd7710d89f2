import { describe, expect, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import type { Caller } from "../../src/core/roles.ts";
import type { Sender } from "../../src/outbound/deadline.ts";
import { STOPPED } from "../../src/outbound/connections.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine, wrapping } from "../support/engine.ts";
import { shared } from "../support/shared.ts";
import { openCredentials, SECRET } from "./rig.ts";

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

// Pages and tools call the services without the routes' own checks.
describe("whoever calls the service", () => {
  test("a person asks for nothing", async () => {
    const person = { ...(await callerWith(KEYS.owner)), keyId: null };
    expect(await codeOf(credentialRequests.ask(person, { host: "p.example", reason: "To test." }))).toBe("forbidden");
  });

  test.each([
    ["whose calls are all held", { hold: "all" }],
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
