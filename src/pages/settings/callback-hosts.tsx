/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import {
  AddCallbackHostBody,
  CallbackTestJson,
  checkCallbackHost,
  TestCallbackBody,
} from "../../accounts/callback-hosts.ts";
import type { ListedHost } from "../../core/account-store.ts";
import { CALLBACK_HOSTS_MAX } from "../../core/limits.ts";
import { seeOther } from "../../http/response.ts";
import { Card, day, Name, Notice } from "../../ui/parts.tsx";
import { duration } from "../../ui/text.ts";
import { filled, type FormState, unlessGone } from "../frame/forms.ts";
import type { PageDeps } from "../frame/page-deps.ts";
import { schemaForm } from "../frame/schema-form.tsx";
import { RowAction } from "../frame/list.tsx";
import { SETTINGS_PATHS } from "../frame/settings-frame.tsx";
import { settingsList } from "../frame/settings-list.tsx";

const HOSTS_PATH = SETTINGS_PATHS.callbackHosts;

const TEST_PATH = `${HOSTS_PATH}/test`;

const HOST_FORM = schemaForm(AddCallbackHostBody, {
  host: { hint: "For example hooks.example.com or 10.0.0.7:8080. The default port is 443 for https and 80 for http." },
});

const TEST_FORM = schemaForm(TestCallbackBody, {
  url: { label: "URL of the receiver", hint: "On a host above, like https://hooks.example.com/outgate." },
  wrong_signature: { label: "Then send one with a wrong signature, which the receiver should refuse" },
});

function Result({ signed, wrong_signature: wrong, verifies }: CallbackTestJson) {
  const took = duration(signed.duration_ms);
  if (signed.error !== null) {
    return <Notice tone="bad">{`The callback was not delivered, after ${took}. ${signed.error}`}</Notice>;
  }
  const delivered = (
    <Notice tone="good">{`The callback was delivered: ${signed.response_code ?? ""} in ${took}.`}</Notice>
  );
  if (wrong === null) return delivered;
  const [tone, text] = verdictOn(wrong, verifies);
  return (
    <>
      {delivered}
      <Notice tone={tone}>{text}</Notice>
    </>
  );
}

/** What the answer to a wrong signature says about the receiver. */
function verdictOn({ response_code: code, error }: CallbackTestJson["signed"], verifies: boolean | null) {
  if (verifies === null) {
    const text = `It is not clear whether the receiver verifies signatures. To the wrong one: ${error ?? ""} It should answer with 401.`;
    return ["wait", text] as const;
  }
  if (verifies)
    return ["good", `The receiver verifies signatures: it refused the wrong one with ${code ?? ""}.`] as const;
  return [
    "bad",
    `The receiver does not verify signatures: it accepted a callback with a wrong one (${code ?? ""}). Anyone can forge callbacks to it.`,
  ] as const;
}

/** A test of a receiver, with its result. */
const TESTED = compile(Type.Object({ asked: TestCallbackBody, result: CallbackTestJson }));

/** A test, or the form that was refused. */
type ShownTest = Checked<typeof TESTED> | { readonly refused: FormState };

function testForm(shown: ShownTest | null): FormState {
  if (shown === null) return filled({ wrong_signature: "yes" });
  return "refused" in shown ? shown.refused : TEST_FORM.filledWith(shown.asked);
}

/** Pages for the hosts that callbacks may go to without approval, and for testing a receiver. */
export function callbackHostPages(deps: PageDeps) {
  const { callbackHosts, flash } = deps;
  const { html, routes, rowForm } = settingsList<ListedHost, typeof AddCallbackHostBody, ShownTest>(deps, {
    shown: TESTED,
    section: "Callback hosts",
    path: HOSTS_PATH,
    intro:
      "Callbacks of a key with a hold or a limit, and of agents where the account has rules, can go only to these hosts: they are sent before an approval, and with what the key’s calls contain. Other keys can use any host.",
    view: async ({ user, shown }) => {
      const rows = await callbackHosts.list(user.caller);
      return {
        rows,
        columns: [
          ["Host", ({ host }) => <Name text={host} />, "wide"],
          ["Added", ({ createdAt }) => day(createdAt)],
        ],
        actions: ({ host }) => (
          <RowAction user={user} path={`${HOSTS_PATH}/remove`} fields={[["host", host]]} of={host} name="Remove" />
        ),
        empty: {
          icon: "external",
          title: "No hosts yet",
          text: "Such callbacks are refused until you add their host.",
        },
        below:
          rows.length === 0 ? null : (
            <Card id="test" title="Test a receiver">
              <p class="quiet">
                Sends a signed callback of the type <code>callback.test</code>, at once. What the receiver answers is
                not stored.
              </p>
              {shown !== null && "result" in shown ? <Result {...shown.result} /> : null}
              <TEST_FORM.Form
                user={user}
                action={TEST_PATH}
                state={testForm(shown)}
                submit="Send test callback"
                look="plain"
              />
            </Card>
          ),
      };
    },
    form: HOST_FORM,
    add: ["Add a host", "Add host"],
    max: CALLBACK_HOSTS_MAX,
    create: ({ caller }, { host }) => callbackHosts.add(caller, checkCallbackHost(host, "validation_error")),
  });
  const remove = rowForm(({ person, form }) => unlessGone(callbackHosts.remove(person.caller, form.get("host") ?? "")));
  const test = deps.answer(
    async ({ person, form }) => {
      const asked = TEST_FORM.check(form);
      const result = await callbackHosts.test(person.caller, asked);
      return flash.redirect(person, HOSTS_PATH, TESTED, { asked, result });
    },
    ({ person }, refused) => html(person, { shown: { refused } }),
  );
  return routes
    .post(`${HOSTS_PATH}/remove`, remove)
    .get(TEST_PATH, () => seeOther("own", HOSTS_PATH))
    .post(TEST_PATH, test);
}
