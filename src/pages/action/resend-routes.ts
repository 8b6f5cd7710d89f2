import { authorize } from "../../core/roles.ts";
import type { Action } from "../../core/action.ts";
import { editedCopy, type EditedFields, fieldsToEdit } from "../../actions/edited-copy.ts";
import { createCheckCreate, toCreateInput } from "../../actions/create-schema.ts";
import { noteActionId, ActionParams } from "../../actions/routes.ts";
import { DomainError } from "../../core/domain-error.ts";
import type { Form } from "../../http/body.ts";
import type { Person } from "../../http/session.ts";
import { see } from "../../receipts/see.ts";
import { storedAction } from "../../receipts/seen-action.ts";
import { issuesText, withField } from "../../api/errors.ts";
import { hasUnknownOutcome } from "../../core/timeline.ts";
import { EMPTY_FORM, formIdIn } from "../frame/forms.ts";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { actionPath } from "../../ui/layout.tsx";
import { editPage } from "./resend.tsx";

export function resendRoutes(deps: PageDeps) {
  const { actionService, answer, clock, ids } = deps;
  const checkCreate = createCheckCreate(deps);
  const findOriginal = async ({ caller }: Person, id: string) => {
    authorize(caller, "create");
    const [action, timeline] = await Promise.all([actionService.get(caller, id), actionService.timeline(caller, id)]);
    return { action: await see(action, "decider"), isUnknown: hasUnknownOutcome(timeline) };
  };
  type Original = Awaited<ReturnType<typeof findOriginal>>;

  /** Throws `validation_error` if the action can't be sent again now. */
  const requireSendable = ({ isUnknown }: Original, form: Form) => {
    if (isUnknown && form.get("sure") !== "yes")
      throw refused("Tick the box below to confirm that you want to send it.");
  };

  /** Creates a new action with all checks of a create. Returns its path. */
  const createCopy = async ({ caller }: Person, copy: Action, form: Form): Promise<string> => {
    const input = toCreateInput(copy, clock.now());
    try {
      const { request, credential, overdue } = checkCreate({ ...input, idempotencyKey: idempotencyKeyIn(form) });
      const { action } = await actionService.create(caller, request, { original: copy, credential, overdue });
      return actionPath(action.id);
    } catch (error) {
      if (!(error instanceof DomainError) || error.issues.length === 0) throw error;
      throw refused(issuesText(error.issues, withField));
    }
  };

  const edited = answer<ById>(
    async ({ context, person, params, form }) => {
      const original = await findOriginal(person, noteActionId(context, params));
      requireSendable(original, form);
      const copy = editedCopy(original.action, fieldsIn(form, fieldsToEdit(storedAction(original.action))));
      if (!("problems" in copy)) return createCopy(person, copy.action, form);
      const issues = Object.entries(copy.problems).map(([field, message]) => ({ field, message }));
      throw new DomainError("validation_error", "Correct the request.", issues);
    },
    async ({ person, params }, typed) => {
      const original = await findOriginal(person, params.id);
      const fields = fieldsIn(typed.values, fieldsToEdit(storedAction(original.action)));
      return editPage({ ...original, user: person, formId: ids.request() }, fields, typed);
    },
  );
  const hooks = { params: ActionParams };
  return personPages(deps)
    .get(
      "/actions/:id/edit",
      async ({ context, person, params }) => {
        const original = await findOriginal(person, noteActionId(context, params));
        const fields = fieldsToEdit(storedAction(original.action));
        return editPage({ ...original, user: person, formId: ids.request() }, fields, EMPTY_FORM);
      },
      hooks,
    )
    .post("/actions/:id/edit", edited, hooks);
}

function refused(message: string): DomainError {
  return new DomainError("validation_error", message);
}

/**
 * The same key for a form that is sent twice, by a double click or from the history, so that the target gets the call once. An
 * edited form is another request. Null if the form has no id. Readers and receipts show the key, so it doesn't contain the id:
 * without that, nobody can find out what was typed by trying values.
 */
function idempotencyKeyIn(form: Form): string | null {
  const id = formIdIn(form);
  if (id === null) return null;
  const typed = ["method", "url", "title", "headers", "body"].map((name) => form.get(name) ?? null);
  return `req_${new Bun.CryptoHasher("sha256")
    .update(JSON.stringify([id, ...typed]))
    .digest("hex")
    .slice(0, 32)}`;
}

/** The edited fields in a form. Ignores fields that can't be edited for this body. */
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
