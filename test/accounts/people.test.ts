import type { RequestSource } from "../../src/core/session.ts";
import { describe, expect, test } from "bun:test";
import { createWelcomeLink, createWelcomeLinkService } from "../../src/accounts/welcome-links.ts";
import { createPeopleService } from "../../src/accounts/people.ts";
import { createSessionService } from "../../src/accounts/sessions.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { PASSWORD_CHARS_MAX } from "../../src/core/limits.ts";
import type { HashLane, Passwords } from "../../src/crypto/passwords.ts";
import { systemIds } from "../../src/core/ids.ts";
import { refusalOf } from "../actions/callers.ts";
import { FakeClock } from "../support/clock.ts";
import { anAccount, later, NOON } from "../support/factory.ts";
import { openFileStore, testSecrets } from "../support/store.ts";

const SOURCE: RequestSource = { client: "192.0.2.1", deviceToken: null, sessionSecret: null, browser: null };

const ANN = { email: "ann@example.com", password: "correct horse" };

/** The service on a real store, with passwords that are hashed at no cost and noted, and ann signed up. */
async function openService() {
  const db = await openFileStore();
  const clock = new FakeClock(NOON);
  const calls: HashLane[] = [];
  const busy = { is: false };
  const gate = { isOpen: true };
  const meanwhile = { act: async () => {} };
  const noted = async <T>(turn: HashLane, result: T) => {
    calls.push(turn);
    const { act } = meanwhile;
    meanwhile.act = async () => {};
    await act();
    if (busy.is) throw new DomainError("unavailable", "Too many passwords wait.");
    return result;
  };
  const passwords: Passwords = {
    hash: (password, turn) => noted(turn, `hash of ${password}`),
    verify: (password, hash, turn) => noted(turn, hash === `hash of ${password}`),
  };
  const sessionService = createSessionService({ store: db.store, clock }, { secrets: testSecrets });
  const service = createPeopleService(
    { store: db.store, ids: systemIds, clock },
    {
      passwords,
      secrets: testSecrets,
      signUpGate: {
        signUps: "open",
        requireOpen: async () => {
          if (!gate.isOpen) throw new DomainError("forbidden", "Sign-ups are closed.");
        },
      },
      sessionService,
    },
  );
  const app = { store: db.store, ids: systemIds, clock };
  const links = createWelcomeLinkService(app, service, sessionService, testSecrets);
  const started = await service.signUp(ANN, SOURCE);
  calls.length = 0;
  return {
    ...service,
    links,
    watchSession: (token: string) => sessionService.watchSession(token),
    started,
    db,
    clock,
    calls,
    busy,
    gate,
    meanwhile,
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  };
}

describe("the check of a password", () => {
  test("that could not be made does not count as a wrong one", async () => {
    await using service = await openService();
    service.busy.is = true;
    for (let at = 0; at < 9; at += 1) {
      expect(await refusalOf(service.logIn(ANN, SOURCE))).toMatchObject({ code: "unavailable" });
    }
    service.busy.is = false;
    expect((await service.logIn(ANN, SOURCE)).person.email).toBe(ANN.email);
  });

  test("is in the queue of the client, and of the person where the device or the session is known", async () => {
    await using service = await openService();
    const { started, calls } = service;
    const { personId = "" } = started.person.caller;
    await service.logIn(ANN, SOURCE);
    await service.logIn(ANN, { ...SOURCE, deviceToken: started.deviceToken });
    await service.sessionSecret.confirm(started.person, ANN.password, SOURCE);
    const known = { lane: personId, isKnown: true, email: null };
    expect(calls).toEqual([{ lane: SOURCE.client, isKnown: false, email: ANN.email.toLowerCase() }, known, known]);
  });

  test("of a session hashes nothing that is too long for a password", async () => {
    await using service = await openService();
    const password = "x".repeat(PASSWORD_CHARS_MAX + 1);
    const refused = service.sessionSecret.confirm(service.started.person, password, SOURCE);
    expect(await refusalOf(refused)).toMatchObject({ code: "invalid_credentials" });
    expect(service.calls).toEqual([]);
  });
});

test("nobody signs up where sign-ups are closed, and no password is hashed for it", async () => {
  await using service = await openService();
  service.gate.isOpen = false;
  const refused = service.signUp({ ...ANN, email: "bob@example.com" }, SOURCE);
  expect(await refusalOf(refused)).toMatchObject({ code: "forbidden" });
  expect(service.calls).toEqual([]);
});

test("a password that was changed while it was checked neither logs in nor is changed again", async () => {
  await using service = await openService();
  const { person, sessionToken } = service.started;
  const changeTo = (password: string, current_password = ANN.password) =>
    service.changePassword(person, { current_password, password }, SOURCE);
  const watch = await service.watchSession(sessionToken);
  service.meanwhile.act = async () => void (await changeTo("the second"));
  expect(await refusalOf(service.logIn(ANN, SOURCE))).toMatchObject({ code: "invalid_credentials" });
  expect(watch?.caller.revoked?.aborted).toBe(true);
  service.meanwhile.act = async () => void (await changeTo("the third", "the second"));
  expect(await refusalOf(changeTo("never", "the second"))).toMatchObject({ code: "invalid_credentials" });
  await service.logIn({ ...ANN, password: "the third" }, SOURCE);
});

/** A link to join an account that has no person yet. */
async function welcomeLink({ db, clock }: Pick<Awaited<ReturnType<typeof openService>>, "db" | "clock">) {
  const { accounts, people } = db.store;
  const account = anAccount({ id: "acc_first", createdAt: new Date(0) });
  await accounts.create(account, []);
  const first = { first: () => Promise.resolve(account) };
  return (await createWelcomeLink({ accounts: first, people, secrets: testSecrets, clock })) ?? "";
}

test("a welcome link with an address that is taken hashes no password", async () => {
  await using service = await openService();
  const refused = service.links.redeem(await welcomeLink(service), ANN, SOURCE);
  expect(await refusalOf(refused)).toMatchObject({ code: "email_taken" });
  expect(service.calls).toEqual([]);
});

test("a link that is used, or whose address is taken, while the password is hashed is refused", async () => {
  await using service = await openService();
  const { person, sessionToken } = service.started;
  const use = (token: string, name: string) => {
    return service.links.redeem(token, { email: `${name}@example.com`, password: `password of ${name}` }, SOURCE);
  };
  const welcome = await welcomeLink(service);
  service.meanwhile.act = async () => void (await service.signUp({ ...ANN, email: "bob@example.com" }, SOURCE));
  expect(await refusalOf(use(welcome, "bob"))).toMatchObject({ code: "email_taken" });
  service.meanwhile.act = async () => void (await use(welcome, "carol"));
  expect(await refusalOf(use(welcome, "dan"))).toMatchObject({ code: "not_found" });

  const { accountId, personId = "" } = person.caller;
  const link = { hash: testSecrets.hash("reset"), personId, accountId, createdAt: NOON, expiresAt: later(1_000) };
  await service.db.store.people.offer(link);
  const watch = await service.watchSession(sessionToken);
  service.meanwhile.act = async () => expect((await use("reset", "eve")).person.email).toBe(ANN.email);
  expect(await refusalOf(use("reset", "eve"))).toMatchObject({ code: "not_found" });
  expect(watch?.caller.revoked?.aborted).toBe(true);
  await service.logIn({ ...ANN, password: "password of eve" }, SOURCE);
});
