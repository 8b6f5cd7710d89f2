import { type CallbackHostService, checkCallbackHost } from "../accounts/callback-hosts.ts";
import type { CallbackTestService } from "../accounts/callback-test.ts";
import { authorize } from "../core/roles.ts";
import type { ErrorCode } from "../core/domain-error.ts";
import { page, seeOther } from "../http/response.ts";
import type { Form } from "../http/request.ts";
import { createPersonRoutes, type Flash, type Person, type PersonRouteDeps } from "../http/session.ts";
import { answerForm, unlessGone } from "./forms.tsx";
import {
  CALLBACK_TEST_PATH,
  type CallbackHostsProps,
  callbackHostsPage,
  type ShownCallbackTest,
} from "./callback-hosts.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";

interface CallbackHostPageDeps extends PersonRouteDeps {
  readonly callbackHosts: CallbackHostService;
  readonly callbackTests: CallbackTestService;
  readonly flash: Flash;
}

/** The page of the hosts that callbacks may go to, with the same service as /v1/callback-hosts. It works without script. */
export function callbackHostPages({ callbackHosts, callbackTests, personOf, formOf, flash }: CallbackHostPageDeps) {
  const html = async (person: Person, more: Omit<CallbackHostsProps, "user" | "hosts">) => {
    // A page of owners: readers get the list over the API.
    authorize(person.caller, "manage");
    return callbackHostsPage({ user: person, hosts: await callbackHosts.list(person.caller), ...more });
  };
  const add = answerForm(
    formOf,
    async ({ person, form }) => {
      await callbackHosts.add(person.caller, checkCallbackHost((form.get("host") ?? "").trim(), "validation_error"));
      return SETTINGS_PATHS.callbackHosts;
    },
    ({ person }, typed) => html(person, { typed }),
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
    ({ person, form }, { problem }) => html(person, { tested: { ...askedIn(form), result: null, problem } }),
    REFUSED,
  );
  return (
    createPersonRoutes(personOf)
      .get(SETTINGS_PATHS.callbackHosts, async ({ context, person }) => {
        // Safe: only the test of a receiver writes a flash for this path.
        const tested = flash.read(context, person) as ShownCallbackTest | null;
        return page("own", await html(person, { tested }));
      })
      .post(SETTINGS_PATHS.callbackHosts, add)
      .post(`${SETTINGS_PATHS.callbackHosts}/remove`, remove)
      // Where the address of a refused form is loaded again.
      .get(CALLBACK_TEST_PATH, () => seeOther("own", SETTINGS_PATHS.callbackHosts))
      .post(CALLBACK_TEST_PATH, test)
  );
}

const REFUSED: ReadonlySet<ErrorCode> = new Set(["validation_error", "rate_limited"]);
