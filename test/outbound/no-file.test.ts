import { expect, test } from "bun:test";

const PROGRAM = new URL("no-file-child.ts", import.meta.url).pathname;

test("without a free file, no connection and no lookup of a name begins, and the outcome says so", async () => {
  const child = Bun.spawn(["prlimit", "--nofile=128", process.execPath, PROGRAM], { stderr: "ignore" });
  const none = "not_sent no_file";
  expect((await child.stdout.text()).trim().split("\n")).toEqual(["answered", none, none, none, "answered"]);
});
