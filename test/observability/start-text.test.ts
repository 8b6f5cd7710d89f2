import { expect, test } from "bun:test";
import { startText } from "../../src/observability/start-text.ts";

const FACTS = {
  version: "1.2.3",
  baseUrl: "http://127.0.0.1:3000",
  database: "./data/outgate.db",
  nodeId: null,
  metricsUrl: null,
  warnings: [],
  notices: [],
};

const plain = (text: string) => text;

test("a start tells what runs where, a line each", () => {
  expect(startText(FACTS, { paint: plain, columns: 100 })).toBe(`
  Outgate 1.2.3 is running. Ctrl-C stops it.

  Console     http://127.0.0.1:3000      approve, look up, retry
  API         http://127.0.0.1:3000/v1   reference: http://127.0.0.1:3000/docs/api
  MCP         http://127.0.0.1:3000/mcp  for agents
  Database    ./data/outgate.db
`);
});

test("what does not fit is left out or wrapped, and several nodes are told apart", () => {
  const notices = ["A note of some words that is longer than the terminal is wide, and is wrapped."];
  const more = {
    ...FACTS,
    warnings: ["Set BASE_URL."],
    notices,
    nodeId: "nod_1",
    metricsUrl: "http://127.0.0.1:9464/metrics",
  };
  const text = startText(more, { paint: plain, columns: 60 });
  expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(60);
  expect(text).not.toContain("reference");
  expect(text).toContain("  Metrics     http://127.0.0.1:9464/metrics\n");
  expect(text).toContain("  Node        nod_1\n");
  expect(text).toEndWith(
    "  Warning     Set BASE_URL.\n  Note        A note of some words that is longer than the\n              terminal is wide, and is wrapped.\n",
  );
});
