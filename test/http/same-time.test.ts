import { expect, test } from "bun:test";
import { openRealServer } from "./real-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer({ starts: false }));

/** The time stands still, so all are made in one millisecond. */
test.each([
  ["/v1/keys", (name: string) => ({ name, role: "agent" }), "first first"],
  ["/v1/channels", (name: string) => ({ name, kind: "webhook", url: `http://127.0.0.1:9/${name}` }), "first first"],
  ["/v1/pauses", (name: string) => ({ host: `${name}.example.com` }), "first first"],
  ["/v1/invitations", (name: string) => ({ email: `${name}@example.com`, role: "reader" }), "last first"],
] as const)("%s lists what was made in one millisecond as it was made", async (path, bodyOf, order) => {
  const made: string[] = [];
  for (const name of ["one", "two", "three", "four", "five", "six"]) {
    const { status, text, json } = await app.call("POST", path, bodyOf(name));
    expect(status, text).toBeLessThan(300);
    made.push(json.id);
  }
  const { json } = await app.call("GET", path);
  const listed = json.data.map(({ id }) => id).filter((id) => made.includes(id));
  expect(listed).toEqual(order === "first first" ? made : made.toReversed());
});
