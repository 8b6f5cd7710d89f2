/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { formatSize } from "../../core/action.ts";
import { type BodyMember, usedBodyMember } from "../../core/body.ts";
import type { EditedFields } from "../../actions/edited-copy.ts";
import { risksOfRequest } from "../../approvals/facts.ts";
import { TITLE_CHARS_MAX } from "../../core/limits.ts";
import { Risks } from "../decisions/decision.tsx";
import { formIdField, type FormState } from "../frame/forms.ts";
import { Button, Checkbox } from "../../ui/form.tsx";
import { actionPath, Layout, render } from "../../ui/layout.tsx";
import { LinkButton, Notice, PageHead } from "../../ui/parts.tsx";
import { MASK } from "../../receipts/mask-rules.ts";
import { bodyPath, callText } from "../../ui/request.tsx";
import type { PageUser } from "../../ui/text.ts";
import { bodySize } from "../../receipts/mask-body.ts";
import type { MaskedAction } from "../../receipts/seen-action.ts";
import { schemaForm } from "../frame/schema-form.tsx";
import { HTTP_METHODS } from "../../core/target.ts";

interface EditPageProps {
  readonly action: MaskedAction;
  readonly user: PageUser;
  /** Whether an attempt has the outcome `unknown`, so that the person must confirm. */
  readonly isUnknown: boolean;
  /** Identifies the form, so that submitting it twice creates one action. */
  readonly formId: string;
}

/** The page that sends the request of an action again as a new one, as it is or edited. */
export function editPage(props: EditPageProps, fields: EditedFields, typed: FormState): string {
  const { action, user, isUnknown, formId } = props;
  const path = actionPath(action.id);
  const member = usedBodyMember(action) ?? "body";
  const hint = member === "base64" || fields.body === null ? undefined : BODY_HINTS[member];
  const state = { ...typed, values: new Map(Object.entries({ ...fields, body: fields.body ?? "" })) };
  return render(
    <Layout title={`Edit and resend: ${callText(action)}`} nav="Actions" user={user}>
      <PageHead
        title="Edit and resend"
        back={{ href: path, name: "Back to the action" }}
        intro={`The original stays as it is. The new action gets its own ID and Idempotency-Key, so the target treats it as a new request. ${
          action.approve ? "It is held for approval, like the original." : "It is sent immediately."
        }`}
      />
      <Risks risks={risksOfRequest(action, { isReasonRead: false })} />
      <EDIT_FORM.Form user={user} action={`${path}/edit`} state={state} fields={[formIdField(formId)]} class="card">
        <EDIT_FORM.Fields of={["method", "url", "title", "headers"]} state={state} />
        {hint === undefined ? (
          <p class="quiet">
            <a href={bodyPath(action.id)}>{`The body (${formatSize(bodySize(action))})`}</a> can’t be edited here: it is
            sent as it is.
          </p>
        ) : (
          <EDIT_FORM.Field name="body" state={state} hint={hint} />
        )}
        {isUnknown ? (
          <>
            <Notice tone="wait">
              The outcome of an attempt is unknown: the target may already have processed this request.
            </Notice>
            <Checkbox name="sure" label="Send it even though the target may have received it" isRequired />
          </>
        ) : null}
        <p class="quiet small">
          {[...state.values.values()].some((text) => text.includes(MASK))
            ? "Values masked as •••• are sent as they are stored, as long as you change neither their masks nor the host. "
            : ""}
          Retries, callback, metadata and the other options stay as in the original.
        </p>
        <div class="buttons">
          <Button>{action.approve ? "Create, to be approved" : "Send as a new action"}</Button>
          <LinkButton href={path}>Cancel</LinkButton>
        </div>
      </EDIT_FORM.Form>
    </Layout>,
  );
}

const EDIT_FORM = schemaForm(
  Type.Object({
    method: Type.Enum([...HTTP_METHODS]),
    url: Type.String(),
    title: Type.Optional(Type.String({ maxLength: TITLE_CHARS_MAX })),
    headers: Type.Optional(Type.String()),
    body: Type.Optional(Type.String()),
  }),
  {
    method: { options: HTTP_METHODS.map((one) => [one, one]) },
    url: { label: "URL" },
    title: { hint: "Optional. What the call does, for the list and for approvers." },
    headers: { type: "lines", hint: "One a line, as “Name: value”." },
    body: { type: "code" },
  },
);

const BODY_HINTS: Readonly<Record<Exclude<BodyMember, "base64">, string>> = {
  body: "JSON. Leave it empty to send no body.",
  json: "JSON. Leave it empty to send no body.",
  form: "The fields of the form, as JSON. Leave it empty to send no body.",
  text: "Text, sent as it is. Leave it empty to send no body.",
};
