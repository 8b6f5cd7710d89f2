import { aRequestContext } from "./stub-server.ts";
import Type from "typebox";
import { compile } from "../../src/api/check.ts";
import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { FLASH_COOKIE_CHARS_MAX } from "../../src/core/limits.ts";
import { createFlash, FlashTooLarge } from "../../src/http/flash.ts";
import { FakeClock } from "../support/clock.ts";
import { testSecrets } from "../support/store.ts";
import { cookiesIn } from "./signed-in.ts";

const ANN = { formToken: "ann's" };

const VALUE = compile(Type.Object({ text: Type.Optional(Type.String()) }));

const rig = (baseUrl = "http://127.0.0.1:3000") => {
  const clock = new FakeClock();
  return { clock, flash: createFlash({ secrets: testSecrets, clock, baseUrl }) };
};

const contextOf = (path: string, cookies: readonly string[]) =>
  aRequestContext({
    request: new Request(`http://localhost${path}`, { headers: { cookie: cookies.join("; ") } }),
    path,
  });

describe("what a page is told after a form", () => {
  test.each([0, 100, 2 * FLASH_COOKIE_CHARS_MAX])("is there whatever its size: %i random bytes", (bytes) => {
    const { flash } = rig();
    const value = { text: randomBytes(bytes).toString("base64"), list: [1, null, "ü"] };
    const redirect = flash.redirect(ANN, "/keys/key_1/made", VALUE, value);
    expect([redirect.status, redirect.headers.get("location")]).toEqual([303, "/keys/key_1/made"]);
    const cookies = cookiesIn(redirect);
    for (const cookie of cookies) expect(cookie.length).toBeLessThan(4_000);
    // Those of a longer answer before may be there still.
    const left = Array.from({ length: 3 - cookies.length }, (_, at) => `outgate_flash_${cookies.length + at}=left`);
    expect(flash.read(contextOf("/keys/key_1/made", [...cookies, ...left]), ANN, VALUE)).toEqual(value);
  });

  test("is refused where it does not fit", () => {
    const { flash } = rig();
    const value = { text: randomBytes(5 * FLASH_COOKIE_CHARS_MAX).toString("base64") };
    expect(() => flash.redirect(ANN, "/x", VALUE, value)).toThrow(FlashTooLarge);
  });

  test("is another session's or another path's nothing, and nobody's when it is altered, cut or late", () => {
    const { flash, clock } = rig();
    const cookies = cookiesIn(flash.redirect(ANN, "/x", VALUE, { text: randomBytes(4_000).toString("hex") }));
    expect(cookies.length).toBeGreaterThan(1);
    expect(flash.read(contextOf("/x", cookies), ANN, VALUE)).not.toBeNull();
    expect(flash.read(contextOf("/x", cookies), { formToken: "bob's" }, VALUE)).toBeNull();
    expect(flash.read(contextOf("/y", cookies), ANN, VALUE)).toBeNull();
    expect(flash.read(contextOf("/x", cookies.slice(0, 1)), ANN, VALUE)).toBeNull();
    expect(flash.read(contextOf("/x", []), ANN, VALUE)).toBeNull();
    const another = compile(Type.Object({ key: Type.String() }));
    expect(flash.read(contextOf("/x", cookies), ANN, another)).toBeNull();
    for (const odd of ["", "1-", "1-x", "0-x", "99-x", "x"]) {
      expect(flash.read(contextOf("/x", [`outgate_flash_0=${odd}`]), ANN, VALUE), odd).toBeNull();
    }
    clock.advance(5 * 60_000);
    expect(flash.read(contextOf("/x", cookies), ANN, VALUE)).toBeNull();
  });

  test("never goes out in clear, and with https only sealed and over TLS", () => {
    const { flash } = rig("https://outgate.example.com");
    const [set = ""] = flash.redirect(ANN, "/x", VALUE, { text: "canary" }).headers.getSetCookie();
    expect(set).toMatch(/^__Secure-outgate_flash_0=1-\S+; Path=\/x; HttpOnly; SameSite=Lax; Secure; Max-Age=300$/);
    expect(set).not.toContain("canary");
    const [, sealed = ""] = /=1-([^;]+)/.exec(set) ?? [];
    expect(Buffer.from(sealed.split(".")[1] ?? "", "base64").toString("latin1")).not.toContain("canary");
  });
});
