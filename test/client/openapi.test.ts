import { expect, test } from "bun:test";
import { CLIENT_TYPES, clientTypes } from "../../scripts/client-types.ts";

test("the client's types are those of the API description: `npm run client-types` writes them", async () => {
  expect(await Bun.file(CLIENT_TYPES).text()).toBe(await clientTypes("plain"));
});
