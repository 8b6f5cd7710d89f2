import { describe, expect, test } from "bun:test";
import type { HmacScheme } from "../../src/core/credential.ts";
import {
  applyCredential,
  clashingHeader,
  secretProblem,
  unknownPlaces,
  VALUE_PLACES,
} from "../../src/credentials/kinds.ts";

const NOW = new Date("2026-03-04T12:00:00.500Z");

const REQUEST = {
  url: "https://api.example.com/v1/orders?x=1#top",
  method: "POST",
  body: '{"a":"{timestamp}"}',
} as const;

const HMAC: HmacScheme = {
  kind: "hmac",
  header: "X-Signature",
  algorithm: "sha256",
  encoding: "hex",
  signs: "{timestamp}.{body}",
  value: "t={timestamp},v1={signature}",
  time: "seconds",
  timeHeader: "X-Timestamp",
};

/** By another implementation: WebCrypto. */
async function hmac(hash: string, key: string, text: string): Promise<Buffer> {
  const name = { name: "HMAC", hash };
  const imported = await crypto.subtle.importKey("raw", Buffer.from(key), name, false, ["sign"]);
  return Buffer.from(await crypto.subtle.sign("HMAC", imported, Buffer.from(text)));
}

describe("a credential sets", () => {
  test("a bearer token, a header with or without a scheme, a user and a password", () => {
    expect(applyCredential({ kind: "bearer" }, REQUEST, "sk_live_1", NOW)).toEqual({
      headers: [["Authorization", "Bearer sk_live_1"]],
      secrets: ["Bearer sk_live_1"],
    });
    const header = { kind: "header", header: "X-Api-Key" } as const;
    expect(applyCredential({ ...header, scheme: null }, REQUEST, "k 1", NOW).headers).toEqual([["X-Api-Key", "k 1"]]);
    expect(applyCredential({ ...header, scheme: "Token" }, REQUEST, "k1", NOW).headers).toEqual([
      ["X-Api-Key", "Token k1"],
    ]);
    const pair = Buffer.from("änn:pä:ss").toString("base64");
    expect(applyCredential({ kind: "basic", username: "änn" }, REQUEST, "pä:ss", NOW)).toEqual({
      headers: [["Authorization", `Basic ${pair}`]],
      secrets: [`Basic ${pair}`, pair],
    });
  });

  test("a signature of what it says, in each algorithm, encoding and form of time", async () => {
    const seconds = "1772625600";
    const signature = (await hmac("SHA-256", "whole secret", `${seconds}.${REQUEST.body}`)).toString("hex");
    const value = `t=${seconds},v1=${signature}`;
    expect(applyCredential(HMAC, REQUEST, "whole secret", NOW)).toEqual({
      headers: [
        ["X-Signature", value],
        ["X-Timestamp", seconds],
      ],
      secrets: [value, signature],
    });
    const all = "{method} {url} {host} {path} {query} {timestamp}";
    const other = {
      ...HMAC,
      algorithm: "sha512",
      encoding: "base64",
      time: "iso",
      timeHeader: null,
      value: "{signature}",
    } as const;
    const text = "POST https://api.example.com/v1/orders?x=1 api.example.com /v1/orders x=1 2026-03-04T12:00:00.500Z";
    expect(applyCredential({ ...other, signs: all }, REQUEST, "k", NOW).headers).toEqual([
      ["X-Signature", (await hmac("SHA-512", "k", text)).toString("base64")],
    ]);
    const bytes = { ...REQUEST, body: new Uint8Array([0, 255, 1]) };
    const expected = new Bun.CryptoHasher("sha1", "k").update(new Uint8Array([0, 255, 1])).digest("base64url");
    const short = { ...other, algorithm: "sha1", encoding: "base64url", signs: "{body}" } as const;
    expect(applyCredential(short, bytes, "k", NOW).headers).toEqual([["X-Signature", expected]]);
    expect(
      applyCredential(
        { ...short, signs: "{timestamp}{body}", time: "milliseconds" },
        { ...REQUEST, body: null },
        "k",
        NOW,
      ).headers,
    ).toEqual([["X-Signature", new Bun.CryptoHasher("sha1", "k").update("1772625600500").digest("base64url")]]);
  });
});

test("a request may not set a header of its credential, in any spelling", () => {
  const clash = (name: string) => clashingHeader({ kind: "bearer" }, { Accept: "*/*", [name]: "x" });
  for (const name of ["Authorization", "AUTHORIZATION", "authorization"]) expect(clash(name)).toBe(name);
  expect(clash("X-Authorization")).toBeNull();
  const own = { kind: "header", header: "X-Api-Key", scheme: null } as const;
  for (const name of ["x_api_key", "X-API_Key", "x.api.key"]) expect(clashingHeader(own, { [name]: "x" })).toBe(name);
  expect(clashingHeader(HMAC, { x_timestamp: "1" })).toBe("x_timestamp");
  expect(clashingHeader(HMAC, null)).toBeNull();
});

test("a secret can't split a header, and has what its kind needs", () => {
  for (const kind of ["bearer", "header", "basic", "hmac"] as const) {
    expect(secretProblem(kind, "sk_live_12345678")).toBeNull();
    for (const bad of ["a\r\nX-Evil: 1", "a\nb", "a\0b", ""]) expect(secretProblem(kind, bad)).not.toBeNull();
  }
  expect(secretProblem("bearer", "two words")).not.toBeNull();
  expect(secretProblem("header", " spaced")).not.toBeNull();
  expect(secretProblem("header", "ключ")).not.toBeNull();
  expect(secretProblem("basic", "half a pair: \ud83d")).not.toBeNull();
});

test("a template names only what there is", () => {
  expect(unknownPlaces("t={timestamp},v1={signature}", VALUE_PLACES)).toEqual([]);
  expect(unknownPlaces("{secret}.{signature}", VALUE_PLACES)).toEqual(["secret"]);
});
