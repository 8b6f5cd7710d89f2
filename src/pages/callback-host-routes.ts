import { type CallbackHostService, checkCallbackHost } from "../accounts/callback-hosts.ts";
import type { CallbackTestService } from "../accounts/callback-test.ts";
import { authorize } from "../core/roles.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import { INVALID, showFormAgain } from "../http/errors.ts";
import { page, seeOther } from "../http/response.ts";
import {
  type AnswerPerson,
  createPersonRoutes,
  type Flash,
  type Person,
  type PersonRouteDeps,
} from "../http/session.ts";
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
export function callbackHostPages(deps: CallbackHostPageDeps) {
  return (
    createPersonRoutes(deps.personOf)
      .get(SETTINGS_PATHS.callbackHosts, async ({ context, person }) => {
        // Safe: only the test of a receiver writes a flash for this path.
        const tested = deps.flash.read(context, person) as ShownCallbackTest | null;
        return page("own", await hostsHtml(deps, person, { tested }));
      })
      .post(SETTINGS_PATHS.callbackHosts, addCallbackHost(deps))
      .post(`${SETTINGS_PATHS.callbackHosts}/remove`, removeCallbackHost(deps))
      // Where the address of a refused form is loaded again.
      .get(CALLBACK_TEST_PATH, () => seeOther("own", SETTINGS_PATHS.callbackHosts))
      .post(CALLBACK_TEST_PATH, testCallback(deps))
  );
}

async function hostsHtml(
  { callbackHosts }: CallbackHostPageDeps,
  person: Person,
  more: Omit<CallbackHostsProps, "user" | "hosts">,
): Promise<string> {
  // A page of owners: readers get the list over the API.
  authorize(person.caller, "manage");
  return callbackHostsPage({ user: person, hosts: await callbackHosts.list(person.caller), ...more });
}

function addCallbackHost(deps: CallbackHostPageDeps): AnswerPerson {
  const { callbackHosts, formOf } = deps;
  return async ({ context, person }) => {
    const typed = (await formOf(context, person)).get("host") ?? "";
    try {
      await callbackHosts.add(person.caller, checkCallbackHost(typed.trim(), "validation_error"));
    } catch (error) {
      return showFormAgain(context, error, INVALID, (problem) => hostsHtml(deps, person, { typed, problem }));
    }
    return seeOther("own", SETTINGS_PATHS.callbackHosts);
  };
}

function removeCallbackHost({ callbackHosts, formOf }: CallbackHostPageDeps): AnswerPerson {
  return async ({ context, person }) => {
    const host = (await formOf(context, person)).get("host") ?? "";
    // Somebody else may have removed it already.
    await callbackHosts.remove(person.caller, host).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== "not_found") throw error;
    });
    return seeOther("own", SETTINGS_PATHS.callbackHosts);
  };
}

function testCallback(deps: CallbackHostPageDeps): AnswerPerson {
  const { callbackTests, formOf, flash } = deps;
  return async ({ context, person }) => {
    const form = await formOf(context, person);
    const asked = { url: (form.get("url") ?? "").trim(), asksWrong: form.get("wrong_signature") === "yes" };
    try {
      const result = await callbackTests.test(person.caller, asked.url, asked.asksWrong);
      const tested: ShownCallbackTest = { ...asked, result, problem: null };
      return flash.redirect(person, SETTINGS_PATHS.callbackHosts, tested);
    } catch (error) {
      return showFormAgain(context, error, REFUSED, (problem) =>
        hostsHtml(deps, person, { tested: { ...asked, result: null, problem } }),
      );
    }
  };
}

const REFUSED: ReadonlySet<ErrorCode> = new Set(["validation_error", "rate_limited"]);
