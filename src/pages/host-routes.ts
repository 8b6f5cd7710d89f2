import { hostRulesFrom } from "../api/host-settings.ts";
import { checkHost } from "../core/target.ts";
import type { HostService } from "../hosts/service.ts";
import { ALL_HOSTS, NO_HOST_RULES } from "../core/host-settings.ts";
import { INVALID, showFormAgain } from "../http/errors.ts";
import type { Form } from "../http/request.ts";
import { page } from "../http/response.ts";
import { type AnswerPerson, createPersonRoutes, type Person, type PersonRouteDeps } from "../http/session.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { SigningService } from "../accounts/signing-secrets.ts";
import { readDuration } from "../ui/text.ts";
import { calledHosts } from "./settings-routes.ts";
import type { PauseService } from "../pauses/service.ts";
import type { Clock } from "../core/clock.ts";
import { answerForm, EMPTY_FORM, filled, type FormState, numberIn, unlessGone } from "./forms.tsx";
import {
  DEFAULTS_FORM,
  HOST_FORM,
  hostFields,
  hostFormPage,
  HOSTS_PATH,
  hostsPage,
  inheritedRules,
  type ServerRules,
} from "./hosts.tsx";

interface HostPageDeps extends PersonRouteDeps {
  readonly hostService: HostService;
  readonly pauseService: Pick<PauseService, "list">;
  readonly signingService: Pick<SigningService, "origins">;
  /** The server's settings, which hold where the account sets nothing. */
  readonly rulesFor: (caller: Caller) => Promise<ServerRules>;
  readonly clock: Pick<Clock, "now">;
}

/** The pages of what an account sets for hosts, with the same service as /v1/hosts. They work without script. */
export function hostPages(deps: HostPageDeps) {
  const { hostService, personOf, formOf } = deps;
  const put = answerForm(
    formOf,
    async ({ person, form }) => {
      await save(hostService, person, form);
      return HOSTS_PATH;
    },
    ({ person, form }, typed) => formHtml(deps, person, form.get("host") ?? "", typed),
  );
  const remove = answerForm(formOf, async ({ person, form }) => {
    await unlessGone(hostService.remove(person.caller, form.get("host") ?? ""));
    return HOSTS_PATH;
  });
  return createPersonRoutes(personOf)
    .get(HOSTS_PATH, async ({ person }) => page("own", await hostsHtml(deps, person)))
    .get(`${HOSTS_PATH}/defaults`, async ({ person }) => {
      const { defaults } = await ofOwner(hostService, person);
      return page("own", await formHtml(deps, person, ALL_HOSTS, hostFields(defaults)));
    })
    .get(`${HOSTS_PATH}/edit`, edit(deps))
    .post(HOSTS_PATH, put)
    .post(`${HOSTS_PATH}/remove`, remove);
}

async function hostsHtml(deps: HostPageDeps, person: Person, typed = EMPTY_FORM): Promise<string> {
  const { hostService, pauseService, signingService, rulesFor, clock } = deps;
  const { caller } = person;
  const set = await ofOwner(hostService, person);
  const [pauses, called, server] = await Promise.all([
    pauseService.list(caller),
    calledHosts(signingService, caller),
    rulesFor(caller),
  ]);
  const known = called.filter((host) => !set.hosts.some((row) => row.host === host));
  return hostsPage({ user: person, ...set, server, known, pauses, now: clock.now(), typed });
}

async function formHtml({ hostService, rulesFor }: HostPageDeps, user: Person, host: string, typed: FormState) {
  const [{ defaults }, server] = await Promise.all([ofOwner(hostService, user), rulesFor(user.caller)]);
  const inherited = hostFields(inheritedRules(host === ALL_HOSTS ? NO_HOST_RULES : defaults, server));
  return hostFormPage({ user, host, typed, inherited });
}

/** Pages of owners: readers get the list over the API. */
function ofOwner(hostService: HostService, { caller }: Person) {
  authorize(caller, "manage");
  return hostService.list(caller);
}

function edit(deps: HostPageDeps): AnswerPerson {
  const { hostService } = deps;
  return async ({ context, person }) => {
    const typed = new URLSearchParams(context.search).get("host") ?? "";
    const { hosts } = await ofOwner(hostService, person);
    try {
      const host = checkHost(typed, "validation_error");
      const rules = hosts.find((row) => row.host === host)?.rules ?? NO_HOST_RULES;
      return page("own", await formHtml(deps, person, host, hostFields(rules)));
    } catch (error) {
      return showFormAgain(context, error, INVALID, (problem) =>
        hostsHtml(deps, person, { ...filled({ host: typed }), problem }),
      );
    }
  };
}

/** Throws `validation_error`. */
async function save(hostService: HostService, { caller }: Person, form: Form): Promise<void> {
  const host = form.get("host") ?? "";
  if (host === ALL_HOSTS)
    await hostService.putDefaults(caller, hostRulesFrom(DEFAULTS_FORM.check(form, rulesIn(form))));
  else {
    await hostService.put(
      caller,
      checkHost(host, "validation_error"),
      hostRulesFrom(HOST_FORM.check(form, rulesIn(form))),
    );
  }
}

/** The members that people write otherwise than the API; what is neither time nor number stays text, which the check refuses. */
function rulesIn(form: Form): object {
  const [timeout = "", base = "", cap = "", giveUpOn = ""] = ["timeout_ms", "base_ms", "cap_ms", "give_up_on"].map(
    (name) => (form.get(name) ?? "").trim(),
  );
  const ms = (text: string) => readDuration(text) ?? text;
  return {
    timeout_ms: timeout === "" ? null : ms(timeout),
    backoff: base === "" && cap === "" ? null : { base_ms: ms(base), cap_ms: ms(cap) },
    give_up_on: giveUpOn === "" ? null : giveUpOn.split(",").map((text) => numberIn(text.trim())),
  };
}
