/** @jsxImportSource hono/jsx */
import { formatSize, HTTP_METHODS } from "../core/action.ts";
import { type BodyMember, bodyMemberOf } from "../core/body.ts";
import type { EditedFields } from "../actions/edited-copy.ts";
import { risksOfRequest } from "../approvals/facts.ts";
import { TITLE_CHARS_MAX } from "../core/limits.ts";
import { Risks } from "./decision.tsx";
import { type FormState, problemBeside, problemOf } from "./forms.ts";
import { Button, Check, Field, PostForm } from "../ui/form.tsx";
import { actionPath, Layout, render } from "../ui/layout.tsx";
import { LinkButton, Notice, PageHead, Problem } from "../ui/parts.tsx";
import { MASK } from "../receipts/mask-rules.ts";
import { bodyPath, callText, RequestView, SecretsMasked } from "./request.tsx";
import type { PageUser } from "../ui/text.ts";
import { bodySize } from "../receipts/mask-body.ts";
import { asSent } from "../receipts/masked-action.ts";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";

interface ResendPageProps {
  readonly action: MaskedAction;
  readonly user: PageUser;
  /** An attempt has the outcome `unknown`, so the person has to confirm. */
  readonly isUnknown: boolean;
  readonly problem?: string | undefined;
  /** Identifies the form, so that submitting it twice creates one action. */
  readonly formId: string;
}

export function resendPage({ user, isUnknown, problem, formId, ...props }: ResendPageProps): string {
  const action = asSent(props.action);
  return render(
    <Layout title={`Send again: ${callText(action)}`} nav="Actions" user={user}>
      <PageHead
        title="Send this again as a new action?"
        back={{ href: actionPath(action.id), name: "Back to the action" }}
        intro={introOf(action)}
      />
      <RequestView action={action} tellsCallback bodyPath={bodyPath(action.id)} />
      <PostForm user={user} action={`${actionPath(action.id)}/again`} fields={[["form_id", formId]]} class="card">
        <Problem text={problem} />
        {isUnknown ? <SureField /> : null}
        <div class="buttons">
          <Button>Send as a new action</Button>
          <LinkButton href={`${actionPath(action.id)}/edit`}>Edit first</LinkButton>
        </div>
      </PostForm>
      <SecretsMasked />
    </Layout>,
  );
}

function introOf({ approve }: SeenAction): string {
  const what = "It gets its own ID and Idempotency-Key, so the target treats it as a new request.";
  return `${what} ${approve ? "It is held for approval, like the original." : "It is sent immediately."}`;
}

function SureField() {
  return (
    <>
      <Notice tone="wait">
        The outcome of an attempt is unknown: the target may already have processed this request.
      </Notice>
      <Check name="sure" label="Send it even though the target may have received it" isRequired />
    </>
  );
}

export function editPage(props: ResendPageProps, fields: EditedFields, typed: FormState): string {
  const { action, user, isUnknown, formId } = props;
  const path = actionPath(action.id);
  const field = (name: "url" | "title" | "headers") => {
    return { name, value: fields[name], problem: problemOf(typed, name) };
  };
  return render(
    <Layout title={`Edit and resend: ${callText(action)}`} nav="Actions" user={user}>
      <PageHead
        title="Edit and resend"
        back={{ href: path, name: "Back to the action" }}
        intro={`The original stays as it is. ${introOf(action)}`}
      />
      <Risks risks={risksOfRequest(action, { isReasonRead: false })} />
      <PostForm user={user} action={`${path}/edit`} fields={[["form_id", formId]]} class="card">
        <Problem text={problemBeside(typed, Object.keys(fields))} />
        <div class="edit-target">
          <Field name="method" label="Method" value={fields.method} options={HTTP_METHODS.map((one) => [one, one])} />
          <Field {...field("url")} label="URL" required />
        </div>
        <Field
          {...field("title")}
          label="Title"
          hint="Optional. What the call does, for the list and for approvers."
          maxlength={TITLE_CHARS_MAX}
        />
        <Field {...field("headers")} label="Headers" type="lines" hint="One a line, as “Name: value”." />
        <BodyField action={action} body={fields.body} problem={problemOf(typed, "body")} />
        {isUnknown ? <SureField /> : null}
        <p class="quiet small">
          {hasMasks(fields)
            ? "Values masked as •••• are sent as they are stored while their masks and the host stay. "
            : ""}
          Retries, callback, metadata and the other options are those of the original.
        </p>
        <div class="buttons">
          <Button>{action.approve ? "Create, to be approved" : "Send as a new action"}</Button>
          <LinkButton href={`${path}/again`}>Send unchanged</LinkButton>
          <LinkButton href={path}>Cancel</LinkButton>
        </div>
      </PostForm>
    </Layout>,
  );
}

function hasMasks(fields: EditedFields): boolean {
  return Object.values(fields).some((text: string | null) => text !== null && text.includes(MASK));
}

const BODY_HINTS: Readonly<Record<Exclude<BodyMember, "base64">, string>> = {
  body: "JSON. Leave it empty to send no body.",
  json: "JSON. Leave it empty to send no body.",
  form: "The fields of the form, as JSON. Leave it empty to send no body.",
  text: "Text, sent as it is. Leave it empty to send no body.",
};

interface BodyFieldProps {
  readonly action: SeenAction;
  /** Null: it can't be edited. */
  readonly body: string | null;
  readonly problem: string | null;
}

function BodyField({ action, body, problem }: BodyFieldProps) {
  const member = bodyMemberOf(action) ?? "body";
  if (body === null || member === "base64") {
    return (
      <p class="quiet">{`The body (${formatSize(bodySize(action))}) can’t be edited here: it is sent as it is.`}</p>
    );
  }
  return <Field name="body" label="Body" type="code" hint={BODY_HINTS[member]} value={body} problem={problem} />;
}
