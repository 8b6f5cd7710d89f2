import { type ApiOperation, apiOperations } from "../../src/http/openapi.ts";
import { stubDeps, stubHttp } from "../http/stub-server.ts";

/** An operation of the API, as the routes of the service describe it. */
export interface Operation extends ApiOperation {
  readonly id: string;
  /** Statuses of its successful responses. */
  readonly success: readonly number[];
}

export const OPERATIONS: readonly Operation[] = apiOperations(stubHttp(stubDeps()).routes).map((operation) => ({
  ...operation,
  id: operation.operationId,
  success: Object.keys(operation.answers).map(Number),
}));
