import { expect, test } from "bun:test";
import { Service } from "../support/service.ts";
import { outgate } from "./outgate.ts";
import { shared } from "../support/shared.ts";

const service = await shared(new Service());
const { port } = new URL(await service.ready());

test.each([[[]], [["--ready"]]])("outgate health %p says yes of a service that runs, without a key", async (flags) => {
  const { code, out, err } = await outgate(["health", ...flags], { env: { PORT: port, HOST: "0.0.0.0" } });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^ok \d+\.\d+\.\d+\n$/);
});

test("outgate health says no, in one line, where nothing listens", async () => {
  const { code, out, err } = await outgate(["health"], { env: { PORT: "9" } });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("http://127.0.0.1:9");
});

test("outgate health --ready says no while the service can't store actions, and health says yes", async () => {
  using starting = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => {
      const isReady = new URL(url).pathname !== "/ready";
      return Response.json(
        { status: isReady ? "ok" : "unavailable", version: "1.2.3" },
        { status: isReady ? 200 : 503 },
      );
    },
  });
  const env = { PORT: String(starting.port) };
  expect((await outgate(["health"], { env })).out).toBe("ok 1.2.3\n");
  expect((await outgate(["health", "--ready"], { env })).code).toBe(1);
});

test("outgate health refuses settings that no service could start with", async () => {
  const { code, err } = await outgate(["health"], { env: { PORT: "many" } });
  expect(code).toBe(1);
  expect(err).toContain("PORT is not a whole number");
});
