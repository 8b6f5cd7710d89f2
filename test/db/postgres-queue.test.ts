import { describe } from "bun:test";
import { hasPostgres } from "../support/postgres.ts";
import { openPostgresStore } from "../support/postgres-store.ts";
import { testQueueOfStore } from "./conformance/suite.ts";

describe.skipIf(!hasPostgres)("the store on PostgreSQL", () => testQueueOfStore(openPostgresStore));
