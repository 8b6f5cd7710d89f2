import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { FakeClock } from "../support/clock.ts";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { shared } from "../support/shared.ts";

// Whoever verifies a signature looks at the time.
const app = await shared(openRealServer({ clock: new FakeClock(new Date()) }));

const secretAt = async (origin: string, use: "calls" | "callbacks" = "calls") =>
  (await app.call("GET", `/v1/signing-secret?origin=${encodeURIComponent(origin)}&for=${use}`)).json.secret;

test("a name with capitals and a trailing dot is called, signed, listed and shown as the same name without", async () => {
  await using target = new Target();
  const port = new URL(target.url).port;
  const [dotted, plain] = [`http://Api.LOCALHOST.:${port}`, `http://api.localhost:${port}`];
  const { id } = (
    await app.call("POST", "/v1/actions", { url: `${dotted}/orders`, body: { n: 1 }, callback: `${dotted}/done` })
  ).json;
  await target.saw(2);

  const [call, callback] = ["/orders", "/done"].map((path) => target.received.find((one) => one.path === path));
  expect([call, callback].map((one) => one?.headers.get("host"))).toEqual([
    `api.localhost:${port}`,
    `api.localhost:${port}`,
  ]);
  for (const [received, use] of [
    [call, "calls"],
    [callback, "callbacks"],
  ] as const) {
    const secret = await secretAt(plain, use);
    expect(await secretAt(dotted, use)).toBe(secret);
    const headers = Object.fromEntries(received?.headers ?? []);
    expect(new Webhook(secret).verify(received?.body ?? "", headers)).toBeDefined();
  }

  for (const host of ["api.localhost", "API.localhost.", `api.LOCALHOST.:${port}`]) {
    const { json } = await app.call("GET", `/v1/actions?host=${encodeURIComponent(host)}`);
    expect(json.data.map((action) => action.id)).toEqual([id]);
  }
  const receipt = /"receipt_url":"([^"]+)"/.exec((await app.call("GET", `/v1/actions/${id}`)).text)?.[1] ?? "";
  const page = await (await fetch(app.url + receipt, { headers: { accept: "text/html" } })).text();
  expect(page).toContain(`api.localhost:${port}`);
  expect(page).not.toMatch(/localhost\.:/i);
});

test("a list is asked for a host in letters of any script, and for the port of the scheme", async () => {
  const { id } = (await app.call("POST", "/v1/actions", { url: "https://Bücher.example./x", approve: true })).json;
  const found = async (host: string) => {
    const { json } = await app.call("GET", `/v1/actions?host=${encodeURIComponent(host)}`);
    return json.data.map((action) => action.id);
  };
  for (const host of ["bücher.example", "BÜCHER.example.", "xn--bcher-kva.example", "bücher.example:443"]) {
    expect(await found(host)).toEqual([id]);
  }
  expect(await found("bücher.example:80")).toEqual([]);
  expect(await found("bucher.example")).toEqual([]);
});
