import type { ActionService } from "../src/actions/desk.ts";
import { compile, onePerField, withoutNulls } from "../src/contract/check.ts";
import { createCheckCreate, type CreateRules } from "../src/contract/create.ts";
import { CreateOptions } from "../src/contract/tool-schemas.ts";
import { isTerminal } from "../src/domain/action.ts";
import { authorize } from "../src/domain/caller.ts";
import { DomainError, type Issue } from "../src/domain/errors.ts";
import { WAIT_SECONDS_DEFAULT } from "../src/domain/limits.ts";
import type { ToolCall } from "./call.ts";
import type { Describe } from "./describe.ts";
import type { ToolAnswer } from "./results.ts";
import { waitForEnd, type WaitDeps } from "./waiting.ts";
import { foundStep } from "./words.ts";

export interface CreateToolDeps extends CreateRules, WaitDeps {
  readonly actionService: Pick<ActionService, "create" | "wait">;
}

const OPTIONS = compile(CreateOptions);

/** The create of REST, with its header and its query parameter among the arguments. */
export function createCreate(deps: CreateToolDeps, describe: Describe) {
  const { actionService } = deps;
  const check = createCheckCreate(deps);

  return async (call: ToolCall): Promise<ToolAnswer> => {
    const caller = call.caller();
    authorize(caller, "create");
    const { idempotency_key: key, wait, ...request } = call.arguments;
    const options = withoutNulls({ idempotency_key: key, wait }, CreateOptions.properties);
    const input = {
      value: request,
      bodyText: () => call.textOf("body"),
      idempotencyKey: typeof key === "string" ? key : null,
      hold: caller.hold,
    };
    const checked = allIssues(OPTIONS.issues(options), () => check(input));
    const { action, differs } = await actionService.create(caller, checked.request, { reason: checked.reason });
    const isWaiting = checked.sync && !isTerminal(action.status);
    const seconds = typeof wait === "number" ? wait : WAIT_SECONDS_DEFAULT;
    const now = isWaiting ? await waitForEnd(deps, call, action.id, seconds) : action;
    const found = differs === undefined ? {} : { differs, before: foundStep(differs) };
    return { json: await describe(call, now, found) };
  };
}

/** Everything that is wrong at once: with what REST says elsewhere, and with the request itself. */
function allIssues<T>(issues: readonly Issue[], check: () => T): T {
  try {
    const checked = check();
    if (issues.length === 0) return checked;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const others = error.issues.map(({ field, message }) => ({ field: NAMES.get(field) ?? field, message }));
    throw new DomainError(error.code, error.message, onePerField([...issues, ...others]));
  }
  throw new DomainError("validation_error", "The arguments are not valid.", issues);
}

/** What a header is called among the arguments. */
const NAMES: ReadonlyMap<string, string> = new Map([["Idempotency-Key", "idempotency_key"]]);
