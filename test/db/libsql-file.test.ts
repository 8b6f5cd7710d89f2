import { describe } from "bun:test";
import { openKeptFile } from "../support/kept-files.ts";
import { testStore } from "./conformance/suite.ts";

describe("the store on a file", () => testStore(openKeptFile));
