import { describe, expect, test } from "bun:test";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { outgateAlone, outgateAt, type Said } from "./outgate.ts";
import { shared } from "../support/shared.ts";

const service = await shared(new Service({ env: { RETRY_BASE_MS: "1" } }));
const target = await shared(
  new Target(
    () => Response.json({ error: { message: "No such charge" } }, { status: 422 }),
    500,
    () => Response.json({ ok: true, big: 1 }),
  ),
);
const url = await service.ready();

const say = outgateAt(url);

/** Failed twice with 422, then 500. */
const { id } = JSON.parse((await say(["send", target.url, "-d", '{"n":1}', "--sync"])).out) as { readonly id: string };

const linesOf = ({ out }: Said) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("outgate attempts", () => {
  test("is a table on a terminal, by the beginning of an id", async () => {
    const said = await say(["attempts", id.slice(4, 20)], { terminal: true, env: { NO_COLOR: "1" } });
    const [head = "", ...rows] = said.out.trimEnd().split("\n");
    expect(said.code).toBe(0);
    expect(head.split(/ {2,}/)).toEqual(["RUN", "TRY", "ENDED", "OUTCOME", "TOOK", "ANSWER"]);
    expect(
      rows.map((row) => row.trim().split(/ {2,}/)).map(([, count, , code, , answer]) => [count, code, answer]),
    ).toEqual([
      ["1", "422", "No such charge"],
      ["2", "500", undefined],
      ["3", "200", '{"ok":true,"big":1}'],
    ]);
  });

  test("is a line of JSON for each in a pipe, and the list with --json", async () => {
    expect(linesOf(await say(["attempts", id]))).toMatchObject([
      { attempt: 1, response_code: 422 },
      { attempt: 2, response_code: 500 },
      { attempt: 3, response_code: 200, response_body: { ok: true } },
    ]);
    expect(JSON.parse((await say(["attempts", id, "--json"])).out).data).toHaveLength(3);
    expect((await say(["attempts"])).code).toBe(2);
    expect((await say(["attempts", "act_00000000000000000000000000"])).code).toBe(1);
    expect((await say(["complete", "--", "attempts", "act_"])).out).toContain(id);
  });
});

test.each(["overview", "hosts"])("outgate %s ends with 0 in a pipe, in a process of its own", async (command) => {
  const env = { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY };
  expect(await outgateAlone([command], { env })).toMatchObject({ code: 0, err: "" });
});

test("outgate signing lists origins, prints and rotates a secret, and checks a signature", async () => {
  const { origin } = new URL(target.url);
  expect(linesOf(await say(["signing"]))).toMatchObject([{ origin, for: "calls" }]);
  const got = target.received[0];
  const headers = ["id", "timestamp", "signature"].flatMap((name) => [
    "-H",
    `Webhook-${name}: ${got?.headers.get(`webhook-${name}`)}`,
  ]);
  const verify = (body: string) => say(["signing", "verify", origin, ...headers, "-d", "-"], { input: body });
  const right = await verify('{"n":1}');
  expect([right.code, JSON.parse(right.out)]).toMatchObject([0, { valid: true, secret: "current" }]);
  const wrong = await verify('{"n": 1}');
  expect([wrong.code, JSON.parse(wrong.out)]).toMatchObject([1, { problems: [{ code: "body_changed" }] }]);
  const secret = (await say(["signing", "secret", origin], { terminal: true })).out.trim();
  expect(secret).toMatch(/^whsec_\S+$/);
  expect((await say(["signing", "rotate"])).code).toBe(2);
  expect((await say(["signing", "rotate", origin, "--all"])).code).toBe(2);
  expect((await say(["signing", "rotate", origin], { terminal: true })).out).toContain("Rotated.");
  const shown = await say(["signing", "secret", origin], { terminal: true });
  expect(shown.out).toContain(`signs too until`);
  expect(shown.out).toContain(secret);
  const callbacks = (await say(["signing", "secret", origin, "--callbacks"], { terminal: true })).out;
  expect(callbacks).not.toContain(secret);
  const said = await say(["signing", "verify", origin, ...headers, "-d", '{"n":1}'], { terminal: true });
  expect(said.out).toContain("It matches the previous secret.");
});

test("outgate callback-hosts test says how a receiver fares, and whether it verifies", async () => {
  await using receiver = new Target(204, 401);
  const refused = await say(["callback-hosts", "test", receiver.url]);
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("not on the list")]);
  await say(["callback-hosts", "add", new URL(receiver.url).host]);
  const good = await say(["callback-hosts", "test", receiver.url, "--wrong-signature"], { terminal: true });
  expect([good.code, good.out]).toEqual([0, expect.stringContaining("It verifies signatures.")]);
});

describe("what else the API has", () => {
  test("overview shows figures, notifications are a list", async () => {
    const { out } = await say(["overview", "--range", "1h"], { terminal: true });
    expect(out).toContain("created in 1h");
    expect(out).toContain(new URL(target.url).host);
    expect(JSON.parse((await say(["overview"])).out)).toMatchObject({ range: "24h" });
    expect((await say(["notifications"], { terminal: true })).out).toContain("No notifications yet.");
    await say(["send", target.url, "--approve", "--callback", "http://127.0.0.1:9/hook"]);
    expect(linesOf(await say(["notifications", "--limit", "1"]))).toMatchObject([{ kind: "callback" }]);
    expect((await say(["notifications"], { terminal: true })).out).toContain("action.awaiting_approval");
  });

  test("server shows settings and no secret, and says that no mail is sent", async () => {
    const shown = await say(["server"], { terminal: true });
    expect(shown.out).toContain("RETRY_BASE_MS");
    expect(shown.out).not.toContain(OWNER_KEY);
    expect(JSON.parse((await say(["server"])).out)).toMatchObject({ sends_mail: false });
    const mail = await say(["server", "test-mail", "nobody@example.com"]);
    expect([mail.code, mail.err]).toEqual([1, expect.stringContaining("a person of this account")]);
  });

  test("channels set changes what is named", async () => {
    const slack = ["--slack", "https://hooks.slack.com/services/T0/B0/abcdefgh1234"];
    const channel = JSON.parse((await say(["channels", "add", "ops", ...slack])).out).id;
    const set = async (...more: string[]) => JSON.parse((await say(["channels", "set", channel, ...more])).out);
    expect(await set("--off", "--remind-after", "30")).toMatchObject({ enabled: false, remind_after_minutes: 30 });
    expect(await set("--on", "--name", "desk")).toMatchObject({
      enabled: true,
      name: "desk",
      remind_after_minutes: 30,
    });
    for (const wrong of [[], ["--on", "--off"]])
      expect((await say(["channels", "set", channel, ...wrong])).code).toBe(2);
  });
});
