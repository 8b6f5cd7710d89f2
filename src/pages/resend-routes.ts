import { authorize } from "../core/roles.ts";
import type { Action } from "../core/action.ts";
import {
  metadataOfCopy,
  type EditedFields,
  editedCopy,
  type EditProblems,
  fieldsToEdit,
} from "../actions/edited-copy.ts";
import { createCheckCreate, createInputOf, type CreateRules } from "../actions/create-schema.ts";
import { actionIdOf, ActionParams } from "../actions/routes.ts";
import type { ActionService } from "../actions/service.ts";
import { DomainError, type Issue } from "../core/domain-error.ts";
import type { Form } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { type AnswerById, createPersonRoutes, type Person, type PersonRouteDeps } from "../http/session.ts";
import { see } from "../receipts/see.ts";
import { storedOf } from "../receipts/seen-action.ts";
import type { Clock } from "../core/clock.ts";
import { FORM_ID, type Ids } from "../core/ids.ts";
import { hasUnknown } from "./action.tsx";
import { actionPath } from "../ui/layout.tsx";
import { editPage, resendPage } from "./resend.tsx";

interface ResendRouteDeps extends CreateRules, PersonRouteDeps {
  readonly actionService: Pick<ActionService, "get" | "timeline" | "create">;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "request">;
}

/** Sends an action again as a new one, as it is or edited. */
export function resendRoutes(deps: ResendRouteDeps) {
  const hooks = { params: ActionParams };
  return createPersonRoutes(deps.personOf)
    .get("/actions/:id/again", showResend(deps), hooks)
    .post("/actions/:id/again", resend(deps), hooks)
    .get("/actions/:id/edit", showEdit(deps), hooks)
    .post("/actions/:id/edit", resendEdited(deps), hooks);
}

async function originalOf({ actionService }: ResendRouteDeps, { caller }: Person, id: string) {
  authorize(caller, "create");
  const [action, timeline] = await Promise.all([actionService.get(caller, id), actionService.timeline(caller, id)]);
  return { action: await see(action, "decider"), isUnknown: hasUnknown(timeline) };
}

type Original = Awaited<ReturnType<typeof originalOf>>;

/** Why it can't be sent again now; null: it can. */
function refusal({ action, isUnknown }: Original, form: Form): string | null {
  if (isUnknown && form.get("sure") !== "yes") return "Tick the box below to confirm that you want to send it.";
  if (action.isAltered !== true) return null;
  return "The stored request was altered, so it can't be sent again. Create a new action.";
}

/** Creates a request as a new action, with the checks of every create, and returns its path, or the issues. */
function createCopies(deps: ResendRouteDeps) {
  const checkCreate = createCheckCreate(deps);
  return async ({ caller }: Person, copy: Action, form: Form): Promise<string | readonly Issue[]> => {
    try {
      const input = createInputOf(copy, caller.hold, deps.clock.now());
      const { request } = checkCreate({ ...input, idempotencyKey: idempotencyKeyIn(form) });
      const { action } = await deps.actionService.create(caller, request, { copyOf: copy });
      return actionPath(action.id);
    } catch (error) {
      if (error instanceof DomainError && error.issues.length > 0) return error.issues;
      throw error;
    }
  };
}

/**
 * The same for a form that is sent twice, by a double click or from the history: the target must not get the call twice. A
 * form that was changed since is another request. Null: the form has no id.
 */
function idempotencyKeyIn(form: Form): string | null {
  const id = form.get("form_id") ?? "";
  if (!FORM_ID.test(id)) return null;
  const typed = JSON.stringify(["method", "url", "title", "headers", "body"].map((name) => form.get(name) ?? null));
  return `${id}-${new Bun.CryptoHasher("sha256").update(typed).digest("hex").slice(0, 32)}`;
}

function showResend(deps: ResendRouteDeps): AnswerById {
  return async ({ context, person, params }) => {
    const original = await originalOf(deps, person, actionIdOf(context, params));
    return page("own", resendPage({ ...original, user: person, formId: deps.ids.request() }));
  };
}

/** An unknown outcome needs confirmation. */
function resend(deps: ResendRouteDeps): AnswerById {
  const create = createCopies(deps);
  return async ({ context, person, params }) => {
    const id = actionIdOf(context, params);
    const form = await deps.formOf(context, person);
    const original = await originalOf(deps, person, id);
    const refuse = (problem: string) =>
      page("own", resendPage({ ...original, user: person, problem, formId: deps.ids.request() }), { status: 400 });
    const refused = refusal(original, form);
    if (refused !== null) return refuse(refused);
    const action = storedOf(original.action);
    const copy = { ...action, extras: { ...action.extras, metadata: metadataOfCopy(action) } };
    const created = await create(person, copy, form);
    if (typeof created === "string") return seeOther("own", created);
    context.errorCode = "validation_error";
    return refuse(textOf(created));
  };
}

function showEdit(deps: ResendRouteDeps): AnswerById {
  return async ({ context, person, params }) => {
    const original = await originalOf(deps, person, actionIdOf(context, params));
    const fields = fieldsToEdit(storedOf(original.action));
    return page("own", editPage({ ...original, user: person, fields, formId: deps.ids.request() }));
  };
}

function resendEdited(deps: ResendRouteDeps): AnswerById {
  const create = createCopies(deps);
  return async ({ context, person, params }) => {
    const id = actionIdOf(context, params);
    const form = await deps.formOf(context, person);
    const original = await originalOf(deps, person, id);
    const fields = fieldsIn(form, fieldsToEdit(storedOf(original.action)));
    const refuse = (problem: string | undefined, problems: EditProblems = {}) => {
      context.errorCode = "validation_error";
      const formId = deps.ids.request();
      return page("own", editPage({ ...original, user: person, fields, problem, problems, formId }), { status: 400 });
    };
    const refused = refusal(original, form);
    if (refused !== null) return refuse(refused);
    const copy = editedCopy(original.action, fields);
    if ("problems" in copy) return refuse(undefined, copy.problems);
    const created = await create(person, copy.action, form);
    return typeof created === "string" ? seeOther("own", created) : refuse(textOf(created));
  };
}

/** What a body can't be edited for is not taken from the form either. */
function fieldsIn(form: Form, shown: EditedFields): EditedFields {
  const field = (name: string) => form.get(name) ?? "";
  return {
    method: field("method"),
    url: field("url"),
    title: field("title"),
    headers: field("headers"),
    body: shown.body === null ? null : field("body"),
  };
}

function textOf(issues: readonly Issue[]): string {
  return issues.map(({ field, message }) => `${field}: ${message}`).join(" ");
}
