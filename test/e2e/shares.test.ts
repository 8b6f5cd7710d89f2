import { expect, test } from "bun:test";
import { openRawTarget } from "../support/raw-target.ts";
import { Service } from "../support/service.ts";

/** Answers what asks for /quick, and nothing else ever. */
const openSilent = () =>
  openRawTarget(
    (socket, request) => {
      if (request.startsWith("POST /quick ")) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    },
    { address: "0.0.0.0" },
  );

/** A key of the owner's account that a program has. */
async function agentKey(service: Service): Promise<string> {
  const made = await service.request("/v1/keys", { method: "POST", body: '{"name":"busy","role":"agent"}' });
  return ((await made.json()) as { key: string }).key;
}

test("beside a key that floods none of the owner's 24 requests is refused", async () => {
  await using service = new Service({ env: { RATE_LIMIT_PER_SECOND: "100" } });
  const key = await agentKey(service);
  let isOver = false;
  let refused = 0;
  const flood = Array.from({ length: 8 }, async () => {
    while (!isOver) if ((await service.request("/v1/account", { key })).status === 429) refused += 1;
  });
  while (refused < 10) await Bun.sleep(1);
  const statuses: number[] = [];
  for (let count = 0; count < 24; count += 1) statuses.push((await service.request("/v1/actions")).status);
  isOver = true;
  await Promise.all(flood);
  expect(new Set(statuses)).toEqual(new Set([200]));
}, 30_000);

test("a flood of held actions buries no request of another key on the page for approvals", async () => {
  await using service = new Service({ env: { RATE_LIMIT_PER_SECOND: "0" } });
  const base = await service.ready();
  const login = { email: "ann@example.com", password: "correct horse battery" };
  const headers = { "content-type": "application/json", origin: base };
  const entered = await fetch(`${base}/auth/signup`, { method: "POST", headers, body: JSON.stringify(login) });
  const { api_key: owner } = (await entered.json()) as { api_key: string };
  const cookie = (entered.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
  const made = await service.request("/v1/keys", {
    method: "POST",
    key: owner,
    body: '{"name":"busy","role":"agent","hold":"all"}',
  });
  const { key } = (await made.json()) as { key: string };
  const hold = (asking: string) =>
    service.request("/v1/actions", {
      method: "POST",
      key: asking,
      body: '{"url":"http://127.0.0.1:9/","approve":true}',
    });
  await Promise.all(Array.from({ length: 1_500 }, () => hold(key)));
  const { id } = (await (await hold(owner)).json()) as { id: string };
  const page = await (await fetch(`${base}/approvals`, { headers: { cookie } })).text();
  expect(page).toContain(`/approvals/${id}`);
  expect(page).toContain("busy</");
  expect(page).toContain(" 1,000+<");
}, 30_000);

test("192 silent calls of one key delay no call of another, to the same host or to another one", async () => {
  await using silent = await openSilent();
  await using service = new Service({ env: { RATE_LIMIT_PER_SECOND: "0" } });
  const key = await agentKey(service);
  const flood = (host: string) =>
    Promise.all(
      Array.from({ length: 192 }, () => {
        const body = JSON.stringify({ url: silent.url("/silent", host), retries: 1 });
        return service.request("/v1/actions", { method: "POST", body, key });
      }),
    );
  const deliver = (host: string) =>
    service.create({ url: silent.url("/quick", host), sync: true, retries: 1 }, "?wait=10");
  const inFlight = async (count: number) => {
    while (silent.requests.length < count) await Bun.sleep(10);
  };

  // All of the host's slots but two.
  await flood("127.0.0.1");
  await inFlight(62);
  expect(await deliver("127.0.0.1")).toMatchObject({ status: "completed" });
  expect(await deliver("127.0.0.9")).toMatchObject({ status: "completed" });
  // All of the account's slots.
  for (const host of ["127.0.0.2", "127.0.0.3", "127.0.0.4"]) await flood(host);
  await inFlight(192 + 2);
  expect(await deliver("127.0.0.9")).toMatchObject({ status: "completed" });
  expect(await deliver("127.0.0.2")).toMatchObject({ status: "completed" });
}, 30_000);
