/** @jsxImportSource hono/jsx */
import type { CallbackTest } from "../accounts/callback-test.ts";
import { AddCallbackHost, type CallbackHostService, checkCallbackHost } from "../accounts/callback-hosts.ts";
import { CALLBACK_HOSTS_MAX } from "../core/limits.ts";
import { EmptyState } from "../ui/controls.tsx";
import { Button, Field, PostForm } from "../ui/form.tsx";
import { answerForm, EMPTY_FORM, type FormState, schemaForm, unlessGone } from "./forms.tsx";
import { Card, Day, Name, Notice } from "../ui/parts.tsx";
import { List, RowAction, SETTINGS_PATHS, settingsFrame } from "./settings-frame.tsx";
import { duration, type PageUser } from "../ui/text.ts";
import { authorize } from "../core/roles.ts";
import type { ErrorCode } from "../core/domain-error.ts";
import { page, seeOther } from "../http/response.ts";
import type { Form } from "../http/request.ts";
import { createPersonRoutes, type Person } from "../http/session.ts";
import type { PageDeps } from "./needs.ts";

const HOST_FORM = schemaForm(AddCallbackHost);

const CALLBACK_TEST_PATH = `${SETTINGS_PATHS.callbackHosts}/test`;

/** A test for the page after it. */
interface ShownCallbackTest {
  readonly url: string;
  readonly asksWrong: boolean;
  /** Null: it was refused. */
  readonly result: CallbackTest | null;
  readonly problem: string | null;
}

/** The hosts that callbacks may go to before an approval, with a form to add one, and a test of a receiver there. */
async function callbackHostsPage(
  callbackHosts: CallbackHostService,
  user: Person,
  { typed = EMPTY_FORM, tested = null }: { readonly typed?: FormState; readonly tested?: ShownCallbackTest | null },
): Promise<string> {
  // A page of owners: readers get the list over the API.
  authorize(user.caller, "manage");
  const hosts = await callbackHosts.list(user.caller);
  return settingsFrame({
    user,
    section: "Callback hosts",
    title: "Callback hosts",
    intro:
      "Callbacks of a key with a hold or a limit can go only to these hosts: they are sent before an approval, and with what the key’s calls contain. Other keys can use any host.",
    children: (
      <>
        <List
          title="Callback hosts"
          rows={hosts}
          columns={[
            ["Host", ({ host }) => <Name text={host} />, "wide"],
            ["Added", ({ createdAt }) => <Day at={createdAt} />],
          ]}
          actions={({ host }) => (
            <RowAction
              user={user}
              path={`${SETTINGS_PATHS.callbackHosts}/remove`}
              fields={[["host", host]]}
              of={host}
              name="Remove"
            />
          )}
          empty={
            <EmptyState icon="external" title="No hosts yet">
              <p>Callbacks of keys with a hold or a limit are refused until you add their host.</p>
            </EmptyState>
          }
        />
        {hosts.length >= CALLBACK_HOSTS_MAX && typed.problem === null ? null : (
          <Card id="add" title="Add a host">
            <PostForm user={user} action={SETTINGS_PATHS.callbackHosts} class="ask">
              <HOST_FORM.Field
                state={typed}
                name="host"
                label="Host"
                hint="For example hooks.example.com or 10.0.0.7:8080. The default port is 443 for https and 80 for http."
              />
              <Button look="plain">Add host</Button>
            </PostForm>
          </Card>
        )}
        {hosts.length === 0 ? null : <CallbackTester user={user} tested={tested} />}
      </>
    ),
  });
}

/** Sends a test callback to a URL on one of the hosts. */
function CallbackTester({ user, tested }: { readonly user: PageUser; readonly tested: ShownCallbackTest | null }) {
  return (
    <Card id="test" title="Test a receiver">
      <p class="quiet">
        Sends a signed callback of the type <code>callback.test</code>, at once. What the receiver answers is not
        stored.
      </p>
      {tested === null || tested.result === null ? null : <Result {...tested.result} />}
      <PostForm user={user} action={CALLBACK_TEST_PATH}>
        <Field
          name="url"
          label="URL of the receiver"
          value={tested?.url ?? ""}
          hint="On a host above, like https://hooks.example.com/outgate."
          required
          autocomplete="off"
          problem={tested?.problem ?? null}
        />
        <label class="check">
          <input type="checkbox" name="wrong_signature" value="yes" checked={tested?.asksWrong ?? true} />
          <span>Then send one with a wrong signature, which the receiver should refuse</span>
        </label>
        <div class="buttons">
          <Button look="plain">Send test callback</Button>
        </div>
      </PostForm>
    </Card>
  );
}

function Result({ signed, wrong, verifies }: CallbackTest) {
  if (signed.error !== null) {
    return (
      <Notice tone="bad">{`The callback was not delivered, after ${duration(signed.durationMs)}. ${signed.error}`}</Notice>
    );
  }
  return (
    <>
      <Notice tone="good">{`The callback was delivered: ${signed.code ?? ""} in ${duration(signed.durationMs)}.`}</Notice>
      {wrong === null ? null : (
        <Notice tone={VERDICT_TONES[String(verifies)] ?? "wait"}>{verdictOf(wrong, verifies)}</Notice>
      )}
    </>
  );
}

const VERDICT_TONES: Readonly<Record<string, "good" | "bad">> = { true: "good", false: "bad" };

function verdictOf({ code, error }: CallbackTest["signed"], verifies: boolean | null): string {
  if (verifies === true) return `The receiver verifies signatures: it refused the wrong one with ${code ?? ""}.`;
  if (verifies === false) {
    return `The receiver does not verify signatures: it took a callback with a wrong one (${code ?? ""}). Anybody can forge callbacks to it.`;
  }
  return `Whether the receiver verifies signatures can’t be told. To the wrong one: ${error ?? ""} It should answer with 401.`;
}

/** The page of the hosts that callbacks may go to, with the same service as /v1/callback-hosts. It works without script. */
export function callbackHostPages({
  callbackHosts,
  callbackTests,
  personOf,
  formOf,
  flash,
}: Pick<PageDeps, "personOf" | "formOf" | "callbackHosts" | "callbackTests" | "flash">) {
  const add = answerForm(
    formOf,
    async ({ person, form }) => {
      await callbackHosts.add(person.caller, checkCallbackHost((form.get("host") ?? "").trim(), "validation_error"));
      return SETTINGS_PATHS.callbackHosts;
    },
    ({ person }, typed) => callbackHostsPage(callbackHosts, person, { typed }),
  );
  const remove = answerForm(formOf, async ({ person, form }) => {
    await unlessGone(callbackHosts.remove(person.caller, form.get("host") ?? ""));
    return SETTINGS_PATHS.callbackHosts;
  });
  const askedIn = (form: Form) => ({
    url: (form.get("url") ?? "").trim(),
    asksWrong: form.get("wrong_signature") === "yes",
  });
  const test = answerForm(
    formOf,
    async ({ person, form }) => {
      const { url, asksWrong } = askedIn(form);
      const result = await callbackTests.test(person.caller, url, asksWrong);
      const tested: ShownCallbackTest = { url, asksWrong, result, problem: null };
      return flash.redirect(person, SETTINGS_PATHS.callbackHosts, tested);
    },
    ({ person, form }, { problem }) =>
      callbackHostsPage(callbackHosts, person, { tested: { ...askedIn(form), result: null, problem } }),
    REFUSED,
  );
  return (
    createPersonRoutes(personOf)
      .get(SETTINGS_PATHS.callbackHosts, async ({ context, person }) => {
        // Safe: only the test of a receiver writes a flash for this path.
        const tested = flash.read(context, person) as ShownCallbackTest | null;
        return page("own", await callbackHostsPage(callbackHosts, person, { tested }));
      })
      .post(SETTINGS_PATHS.callbackHosts, add)
      .post(`${SETTINGS_PATHS.callbackHosts}/remove`, remove)
      // Where the address of a refused form is loaded again.
      .get(CALLBACK_TEST_PATH, () => seeOther("own", SETTINGS_PATHS.callbackHosts))
      .post(CALLBACK_TEST_PATH, test)
  );
}

const REFUSED: ReadonlySet<ErrorCode> = new Set(["validation_error", "rate_limited"]);
