import { describe, expect, test } from "bun:test";
import { runStatements } from "../../db/commands/statements.ts";
import { openFile } from "../../db/libsql/file.ts";
import { CREDENTIALS_HIDDEN_PER_HOST_MAX, RESPONSE_BODY_BYTES_MAX } from "../../src/core/limits.ts";
import { ECHO_MASK } from "../../src/credentials/echo.ts";
import { KEYS } from "../http/stub-server.ts";
import type { Received } from "../support/target.ts";
import { type CredentialRig, openCredentials, SECRET } from "./rig.ts";

type Form = (authorization: string) => Response;

/** A target that keeps what its last call was sent with, and shows it to whoever asks later, as logs and inspectors do. */
function keeping(form: Form) {
  let kept = "";
  return ({ headers, path }: Received) => {
    if (path === "/log") return form(kept);
    kept = headers.get("authorization") ?? "";
    return new Response("ok");
  };
}

/** What a call without a credential reads, after one with it. */
async function readLater(form: Form, more: object = {}) {
  await using rig = await openCredentials(keeping(form));
  await rig.add(more);
  await rig.ended(await rig.create());
  return (await log(rig)).json["response_body"];
}

const log = async (rig: CredentialRig) =>
  rig.ended(
    await rig.call("POST", "/v1/actions", { url: `${rig.target.url}log`, method: "GET", retries: 1 }, KEYS.agent),
  );

describe("what a host shows of a credential in an answer to a later call", () => {
  test("is masked, also where that call has no credential or another one", async () => {
    const shows = (last: string) => Response.json({ last });
    expect(await readLater(shows)).toEqual({ last: ECHO_MASK });
    const basic = { kind: "basic", username: "ann" };
    expect(await readLater(shows, basic)).toEqual({ last: ECHO_MASK });
    await using rig = await openCredentials(keeping(shows));
    await rig.add({ keys: [] });
    await rig.add({ name: "other", secret: "another-secret-of-4242" });
    await rig.ended(await rig.create({ credential: "stripe-live" }, KEYS.owner), KEYS.owner);
    const other = await rig.ended(
      await rig.create({ url: `${rig.target.url}log`, method: "GET", credential: "other" }),
    );
    expect(other.json["response_body"]).toEqual({ last: ECHO_MASK });
    // It says nothing of the credential with which the second call went.
    expect((await rig.call("GET", "/v1/credentials/other")).json["echoed_by"] ?? []).toEqual([]);
  });

  test("is withheld in bytes that are no text, which stay as they are without it", async () => {
    const withheld = "withheld: it may contain the credential";
    const bytes = (text: string) => new Response(Buffer.concat([Buffer.from([0xff, 0xd8]), Buffer.from(text)]));
    expect(await readLater(bytes)).toBe(withheld);
    expect(await readLater((text) => new Response(Buffer.from(`\u00ff${text}`, "utf16le")))).toBe(withheld);
    expect(await readLater((text) => new Response(text.slice(7, 14), { status: 206 }))).toBe(withheld);
    // Their end may be the beginning of it, and the caller may choose where that is.
    const cut = (text: string) => bytes("-".repeat(RESPONSE_BODY_BYTES_MAX - text.length - 1) + text);
    expect(await readLater(cut)).toBe(withheld);
    expect(await readLater(() => bytes("an image"))).toEqual({ encoding: "base64", data: "/9hhbiBpbWFnZQ==" });
  });
});

test("credentials that the key may use are looked for before those of others", async () => {
  await using rig = await openCredentials(keeping((last) => Response.json({ last })));
  for (let at = 0; at <= CREDENTIALS_HIDDEN_PER_HOST_MAX; at += 1) {
    await rig.add({ name: `owner-${at}`, secret: `another-secret-${at}`, keys: [] });
    await rig.ended(await rig.create({ credential: `owner-${at}` }, KEYS.owner), KEYS.owner);
  }
  await rig.add();
  await rig.ended(await rig.create());
  expect((await log(rig)).json["response_body"]).toEqual({ last: ECHO_MASK });
});

test.each([`'{"kind":"of-a-later-version"}'`, "'no JSON'"])(
  "one that is altered to %s keeps no other call from its host",
  async (settings) => {
    await using rig = await openCredentials(keeping((last) => Response.json({ last })));
    await rig.add();
    await rig.add({ name: "altered", secret: "another-secret-of-4242" });
    const file = openFile(`${rig.app.engine.folder}/outgate.db`, "shared");
    await runStatements(file, [
      { sql: `update credentials set settings = ${settings} where name = 'altered'`, args: [] },
    ]);
    await file.close();
    expect((await rig.ended(await rig.create())).json.status).toBe("completed");
    expect((await log(rig)).json["response_body"]).toEqual({ last: ECHO_MASK });
  },
);

test("calls to hosts for which there is no credential are searched for none", async () => {
  const shows = (last: string) => Response.json({ last });
  await using rig = await openCredentials(keeping(shows));
  await rig.add({ hosts: ["api.example.com"] });
  await rig.ended(
    await rig.call(
      "POST",
      "/v1/actions",
      { url: rig.target.url, headers: { authorization: `Bearer ${SECRET}` }, retries: 1 },
      KEYS.owner,
    ),
    KEYS.owner,
  );
  const asked = { url: `${rig.target.url}log`, method: "GET", retries: 1 };
  const read = await rig.ended(await rig.call("POST", "/v1/actions", asked, KEYS.owner), KEYS.owner);
  expect(read.json["response_body"]).toEqual({ last: `Bearer ${SECRET}` });
});
