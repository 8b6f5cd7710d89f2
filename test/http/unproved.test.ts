import { describe, expect, test } from "bun:test";
import { createWelcomeLink } from "../../src/accounts/welcome-links.ts";
import { openPeopleServer, PASSWORD } from "./people-server.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const BYTES_MAX = 16_384;
const JSON_TYPE = { "content-type": "application/json" };
const FORM = { "content-type": "application/x-www-form-urlencoded" };

const app = await shared(openPeopleServer());
const { store, secrets, clock } = app.engine;
const welcome = await createWelcomeLink({ accounts: store.accounts, people: store.people, secrets, clock });
const invited = await app.call("POST", "/v1/invitations", `{"email":"bob@example.com","role":"approver"}`);
const { link } = JSON.parse(invited.text) as { link: string };
const held = await app.call("POST", "/v1/actions", `{"url":"http://127.0.0.1:9/","approve":true}`);
const { approve } = await app.linksOf(held.json.id);
const paths = { welcome: `/welcome/${welcome}`, invitation: new URL(link).pathname, link: approve };
/** Everywhere a body is read without a key and without a session. */
const PLACES: readonly (readonly [string, () => string, "json" | "form"])[] = [
  ["a login", () => "/auth/login", "json"],
  ["the form of a login", () => "/auth/login", "form"],
  ["a sign-up", () => "/auth/signup", "json"],
  ["the form of a sign-up", () => "/auth/signup", "form"],
  ["a one-time link", () => paths.welcome, "form"],
  ["an invitation", () => paths.invitation, "form"],
  ["an approval link", () => paths.link, "form"],
];

const post = (path: string, body: string | ReadableStream, headers: Readonly<Record<string, string>>) =>
  app.ask("POST", path, { body, headers: { origin: app.origin, ...headers } });

/** The same bytes without a length. */
function inChunks(text: string): ReadableStream {
  const bytes = new TextEncoder().encode(text);
  return new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 4_096) controller.enqueue(bytes.subarray(at, at + 4_096));
      controller.close();
    },
  });
}

describe("until a key or a session is proved, a body has at most 16 KiB", () => {
  test.each(PLACES)("%s", async (_name, pathOf, kind) => {
    const headers = kind === "json" ? JSON_TYPE : FORM;
    const bodyOf = (bytes: number) =>
      kind === "json" ? `{"x":"${"x".repeat(bytes - 8)}"}` : `x=${"x".repeat(bytes - 2)}`;
    for (const as of [(text: string) => text, inChunks]) {
      const fits = await post(pathOf(), as(bodyOf(BYTES_MAX)), headers);
      expect(fits.status).toBe(400);
      const tooLarge = await post(pathOf(), as(bodyOf(BYTES_MAX + 1)), headers);
      expect(tooLarge.status).toBe(413);
      expect(tooLarge.text).toContain("at most 16384 bytes");
    }
  });

  test("and as much as it may with a session, or a key", async () => {
    const { cookie } = await app.signedUp("carl@example.com");
    const form = `password=${PASSWORD}&x=${"x".repeat(60_000)}`;
    expect((await post("/settings/account", form, { ...FORM, cookie })).status).not.toBe(413);
    const body = `{"url":"http://127.0.0.1:9/","approve":true,"body":{"x":"${"x".repeat(1_000_000)}"}}`;
    const authorization = `Bearer ${KEYS.owner}`;
    for (const as of [(text: string) => text, inChunks]) {
      expect((await post("/v1/actions", as(body), { ...JSON_TYPE, authorization })).status).toBe(201);
      // A wrong key is told before the size.
      expect((await post("/v1/actions", as(body), { ...JSON_TYPE, authorization: "Bearer x" })).status).toBe(401);
      expect((await post("/mcp", as(body), { ...JSON_TYPE, authorization: "Bearer x" })).status).toBe(401);
    }
  });
});
