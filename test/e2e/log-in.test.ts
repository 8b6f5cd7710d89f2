import { expect, test } from "bun:test";
import { Service } from "../support/service.ts";

const ANN = { email: "ann@example.com", password: "correct horse battery staple" };
const WRONG = { ...ANN, password: "wrong wrong wrong" };
const RIGHT_ONES = 6;
const ATTACKERS = 2;

test("a person logs in while wrong passwords for their address come from everywhere, and the log tells who is who", async () => {
  await using service = new Service({ env: { TRUSTED_PROXIES: "127.0.0.1/32" } });
  const url = await service.ready();
  const post = async (path: string, body: object, client: string) => {
    const headers = { "content-type": "application/json", "x-forwarded-for": `203.0.113.99, ${client}` };
    const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    await answer.bytes();
    return answer.status;
  };
  expect(await post("/auth/signup", ANN, "198.51.100.7")).toBe(201);
  const right: number[] = [];
  const wrong: number[] = [];
  for (let round = 0; round < RIGHT_ONES; round += 1) {
    const flood = Array.from({ length: ATTACKERS }, (_, at) => post("/auth/login", WRONG, `192.0.2.${at}`));
    right.push(await post("/auth/login", ANN, "198.51.100.7"));
    wrong.push(...(await Promise.all(flood)));
  }
  expect(right).toEqual(right.map(() => 200));
  // Five of each attacker are looked at, and no more.
  expect(wrong.filter((status) => status === 401)).toHaveLength(5 * ATTACKERS);
  expect(wrong.filter((status) => status === 429)).toHaveLength((RIGHT_ONES - 5) * ATTACKERS);
  expect(await service.end()).toBe(0);
  const logIns = service.log().filter(({ route }) => route === "/auth/login");
  const clients = logIns.flatMap(({ status, client }) => (status === 200 ? [client] : []));
  expect(clients).toEqual(right.map(() => "198.51.100.7"));
  expect(new Set(logIns.map(({ client }) => client)).size).toBe(1 + ATTACKERS);
});
