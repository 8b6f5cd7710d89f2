import { expect, test } from "bun:test";
import { freePort } from "../support/free-port.ts";
import { createDatabase, hasPostgres } from "../support/postgres.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { PROGRAMS } from "./balancers.ts";

/** Clients that create one action after another while a node stops. */
const CLIENTS = 4;
const CREATES_AFTER_STOP = 10;

for (const { name, path, start } of PROGRAMS) {
  const title = `a node that stops behind ${name} costs no acknowledged action, and no answer but 201 and 503`;
  if (path === null || !hasPostgres) test.skip(`${title} (where ${name} and PostgreSQL are installed)`, () => {});
  else test(title, () => stopOne((nodes) => start(path, nodes)), 60_000);
}

async function stopOne(balanced: (nodes: readonly string[]) => ReturnType<(typeof PROGRAMS)[number]["start"]>) {
  await using target = new Target(() => new Response("{}"));
  const env = { DATABASE_URL: await createDatabase(), SECRET_KEY: "5f".repeat(32), RATE_LIMIT_PER_SECOND: "0" };
  const ports = [await freePort(), await freePort()];
  await using one = new Service({ env: { ...env, PORT: String(ports[0]) } });
  await using other = new Service({ env: { ...env, PORT: String(ports[1]) } });
  await Promise.all([one.ready(), other.ready()]);
  await using balancer = await balanced(ports.map((port) => `127.0.0.1:${port}`));
  let left = Number.POSITIVE_INFINITY;
  const answers: (readonly [status: number, id: string])[] = [];
  const create = async () => {
    const response = await fetch(`${balancer.url}/v1/actions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${OWNER_KEY}`, "Content-Type": "application/json" },
      body: JSON.stringify({ url: target.url }),
    });
    const { id = "" } = (await response.json()) as { readonly id?: string };
    if (response.status === 503) expect(response.headers.get("retry-after")).toBe("1");
    answers.push([response.status, id]);
    return response.status;
  };
  const client = async () => {
    // A balancer may answer 503 for a moment, until it knows that the node is gone.
    while (left > 0) if ((await create()) === 201) left -= 1;
  };
  await create();
  const clients = Array.from({ length: CLIENTS }, client);
  expect(await one.end()).toBe(0);
  left = CREATES_AFTER_STOP;
  await Promise.all(clients);
  expect(answers.filter(([status]) => status !== 201 && status !== 503)).toEqual([]);
  const created = answers.flatMap(([status, id]) => (status === 201 ? [id] : []));
  expect(created.length).toBeGreaterThan(CREATES_AFTER_STOP);
  for (const id of created) expect((await other.final(id))["status"]).toBe("completed");
}
