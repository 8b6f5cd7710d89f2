/** @jsxImportSource hono/jsx */
import type { Static } from "typebox";
import { AddCallbackHost, checkCallbackHost } from "../accounts/callback-hosts.ts";
import { type CallbackTestJson, TestCallbackBody } from "../accounts/callback-test.ts";
import { CALLBACK_HOSTS_MAX } from "../core/limits.ts";
import { authorize } from "../core/roles.ts";
import { seeOther } from "../http/response.ts";
import type { Person } from "../http/session.ts";
import { Button, PostForm } from "../ui/form.tsx";
import { render } from "../ui/layout.tsx";
import { Card, Day, Name, Notice, Problem } from "../ui/parts.tsx";
import { duration } from "../ui/text.ts";
import { answerOn, EMPTY_FORM, filled, type FormState, personPages, problemBeside, unlessGone } from "./forms.ts";
import type { PageDeps } from "./needs.ts";
import { schemaForm } from "./schema-form.tsx";
import { List, RowAction, SETTINGS_PATHS, SettingsPage } from "./settings-frame.tsx";

const HOSTS_PATH = SETTINGS_PATHS.callbackHosts;

const TEST_PATH = `${HOSTS_PATH}/test`;

const HOST_FORM = schemaForm(AddCallbackHost, {
  host: { hint: "For example hooks.example.com or 10.0.0.7:8080. The default port is 443 for https and 80 for http." },
});

const TEST_FORM = schemaForm(TestCallbackBody, {
  url: { label: "URL of the receiver", hint: "On a host above, like https://hooks.example.com/outgate." },
  wrong_signature: { label: "Then send one with a wrong signature, which the receiver should refuse" },
});

interface CallbackHostsState {
  readonly typed?: FormState;
  readonly test?: FormState;
  /** How the test fared. */
  readonly result?: CallbackTestJson;
}

/** The hosts that callbacks may go to before an approval, with a form to add one, and a test of a receiver there. */
async function callbackHostsPage({ callbackHosts }: PageDeps, user: Person, state: CallbackHostsState) {
  const { typed = EMPTY_FORM, test = filled({ wrong_signature: "yes" }), result } = state;
  // A page of owners: readers get the list over the API.
  authorize(user.caller, "manage");
  const hosts = await callbackHosts.list(user.caller);
  return render(
    <SettingsPage
      user={user}
      section="Callback hosts"
      intro="Callbacks of a key with a hold or a limit can go only to these hosts: they are sent before an approval, and with what the key’s calls contain. Other keys can use any host."
    >
      <List
        title="Callback hosts"
        rows={hosts}
        columns={[
          ["Host", ({ host }) => <Name text={host} />, "wide"],
          ["Added", ({ createdAt }) => <Day at={createdAt} />],
        ]}
        actions={({ host }) => (
          <RowAction user={user} path={`${HOSTS_PATH}/remove`} fields={[["host", host]]} of={host} name="Remove" />
        )}
        empty={{
          icon: "external",
          title: "No hosts yet",
          text: "Callbacks of keys with a hold or a limit are refused until you add their host.",
        }}
      />
      {hosts.length >= CALLBACK_HOSTS_MAX && typed.problem === null ? null : (
        <Card id="add" title="Add a host">
          <Problem text={problemBeside(typed, HOST_FORM.shown)} />
          <PostForm user={user} action={HOSTS_PATH} class="ask">
            <HOST_FORM.Field name="host" state={typed} />
            <Button look="plain">Add host</Button>
          </PostForm>
        </Card>
      )}
      {hosts.length === 0 ? null : (
        <Card id="test" title="Test a receiver">
          <p class="quiet">
            Sends a signed callback of the type <code>callback.test</code>, at once. What the receiver answers is not
            stored.
          </p>
          {result === undefined ? null : <Result {...result} />}
          <TEST_FORM.Form user={user} action={TEST_PATH} state={test} submit="Send test callback" look="plain" />
        </Card>
      )}
    </SettingsPage>,
  );
}

function Result({ signed, wrong_signature: wrong, verifies }: CallbackTestJson) {
  const took = duration(signed.duration_ms);
  if (signed.error !== null) {
    return <Notice tone="bad">{`The callback was not delivered, after ${took}. ${signed.error}`}</Notice>;
  }
  return (
    <>
      <Notice tone="good">{`The callback was delivered: ${signed.response_code ?? ""} in ${took}.`}</Notice>
      {wrong === null ? null : <Verdict {...wrong} verifies={verifies} />}
    </>
  );
}

/** What the answer to the wrong signature says of the receiver; null: nothing. */
function Verdict({
  response_code: code,
  error,
  verifies,
}: CallbackTestJson["signed"] & Pick<CallbackTestJson, "verifies">) {
  if (verifies === null) {
    return (
      <Notice tone="wait">{`Whether the receiver verifies signatures can’t be told. To the wrong one: ${error ?? ""} It should answer with 401.`}</Notice>
    );
  }
  return verifies ? (
    <Notice tone="good">{`The receiver verifies signatures: it refused the wrong one with ${code ?? ""}.`}</Notice>
  ) : (
    <Notice tone="bad">{`The receiver does not verify signatures: it took a callback with a wrong one (${code ?? ""}). Anybody can forge callbacks to it.`}</Notice>
  );
}

interface Tested {
  readonly asked: Static<typeof TestCallbackBody>;
  readonly result: CallbackTestJson;
}

export function callbackHostPages(deps: PageDeps) {
  const { callbackHosts, callbackTests, flash } = deps;
  const answer = answerOn(deps, HOSTS_PATH);
  const add = answer(
    async ({ person, form }) =>
      callbackHosts.add(person.caller, checkCallbackHost((form.get("host") ?? "").trim(), "validation_error")),
    ({ person }, typed) => callbackHostsPage(deps, person, { typed }),
  );
  const remove = answer(({ person, form }) => unlessGone(callbackHosts.remove(person.caller, form.get("host") ?? "")));
  const test = deps.answer(
    async ({ person, form }) => {
      const asked = TEST_FORM.check(form);
      const result = await callbackTests.test(person.caller, asked.url, asked.wrong_signature === true);
      const tested: Tested = { asked, result };
      return flash.redirect(person, HOSTS_PATH, tested);
    },
    ({ person }, typed) => callbackHostsPage(deps, person, { test: typed }),
  );
  return (
    personPages(deps)
      .get(HOSTS_PATH, ({ context, person }) => {
        // Safe: only the test of a receiver writes a flash for this path.
        const tested = flash.read(context, person) as Tested | null;
        const state = tested === null ? {} : { test: TEST_FORM.filledWith(tested.asked), result: tested.result };
        return callbackHostsPage(deps, person, state);
      })
      .post(HOSTS_PATH, add)
      .post(`${HOSTS_PATH}/remove`, remove)
      // Where the address of a refused form is loaded again.
      .get(TEST_PATH, () => seeOther("own", HOSTS_PATH))
      .post(TEST_PATH, test)
  );
}
