import { PutDefaults, PutHostSettings, hostRulesFrom } from "../api/host-settings.ts";
import { bodyCheck } from "../api/schema-helpers.ts";
import { DomainError } from "../core/domain-error.ts";
import { checkHost } from "../core/host.ts";
import type { HostService } from "../hosts/service.ts";
import { ALL_HOSTS, NO_HOST_RULES } from "../core/host-settings.ts";
import { INVALID, showFormAgain } from "../http/errors.ts";
import type { Form } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { type AnswerPerson, createPersonRoutes, type Person, type PersonRouteDeps } from "../http/session.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { SigningService } from "../accounts/signing-secrets.ts";
import { readDuration } from "../ui/text.ts";
import { calledHosts } from "./settings-routes.ts";
import type { PauseService } from "../pauses/service.ts";
import type { Clock } from "../core/clock.ts";
import {
  HOST_FIELDS,
  type HostFields,
  hostFieldsOf,
  hostFormPage,
  HOSTS_PATH,
  hostsPage,
  inheritedRules,
  type ServerRules,
  type HostsPageProps,
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
  return createPersonRoutes(personOf)
    .get(HOSTS_PATH, async ({ person }) => page("own", await hostsHtml(deps, person)))
    .get(`${HOSTS_PATH}/defaults`, async ({ person }) => {
      const { defaults } = await ofOwner(hostService, person);
      return page("own", await formHtml(deps, person, { host: ALL_HOSTS, typed: hostFieldsOf(defaults) }));
    })
    .get(`${HOSTS_PATH}/edit`, edit(deps))
    .post(HOSTS_PATH, async ({ context, person }) => {
      const form = await formOf(context, person);
      const host = form.get("host") ?? "";
      try {
        await save(hostService, person, host, valueOf(form));
      } catch (error) {
        return showFormAgain(context, error, INVALID, (problem) =>
          formHtml(deps, person, { host, typed: typedIn(form), problem }),
        );
      }
      return seeOther("own", HOSTS_PATH);
    })
    .post(`${HOSTS_PATH}/remove`, async ({ context, person }) => {
      const host = (await formOf(context, person)).get("host") ?? "";
      // Somebody else may have removed it already.
      await hostService.remove(person.caller, host).catch((error: unknown) => {
        if (!(error instanceof DomainError) || error.code !== "not_found") throw error;
      });
      return seeOther("own", HOSTS_PATH);
    });
}

async function hostsHtml(
  deps: HostPageDeps,
  person: Person,
  more: Partial<Pick<HostsPageProps, "typed" | "problem">> = {},
): Promise<string> {
  const { hostService, pauseService, signingService, rulesFor, clock } = deps;
  const { caller } = person;
  const set = await ofOwner(hostService, person);
  const [pauses, called, server] = await Promise.all([
    pauseService.list(caller),
    calledHosts(signingService, caller),
    rulesFor(caller),
  ]);
  const known = called.filter((host) => !set.hosts.some((row) => row.host === host));
  return hostsPage({ user: person, ...set, server, known, pauses, now: clock.now(), ...more });
}

async function formHtml(
  { hostService, rulesFor }: HostPageDeps,
  person: Person,
  form: Omit<Parameters<typeof hostFormPage>[0], "user" | "inherited">,
): Promise<string> {
  const [{ defaults }, server] = await Promise.all([ofOwner(hostService, person), rulesFor(person.caller)]);
  const inherited = hostFieldsOf(inheritedRules(form.host === ALL_HOSTS ? NO_HOST_RULES : defaults, server));
  return hostFormPage({ user: person, inherited, ...form });
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
      return page("own", await formHtml(deps, person, { host, typed: hostFieldsOf(rules) }));
    } catch (error) {
      return showFormAgain(context, error, INVALID, (problem) => hostsHtml(deps, person, { typed, problem }));
    }
  };
}

const [checkPut, checkDefaults] = [bodyCheck(PutHostSettings), bodyCheck(PutDefaults)];

/** Throws `validation_error`. */
async function save(hostService: HostService, { caller }: Person, host: string, value: object): Promise<void> {
  if (host === ALL_HOSTS) await hostService.putDefaults(caller, hostRulesFrom(checkDefaults(value)));
  else await hostService.put(caller, checkHost(host, "validation_error"), hostRulesFrom(checkPut(value)));
}

function typedIn(form: Form): HostFields {
  const entries = HOST_FIELDS.map((name) => [name, (form.get(name) ?? "").trim()]);
  // Safe: it has every field.
  return Object.fromEntries(entries) as HostFields;
}

/** The fields as the body of a request; what is no number stays text, which the check refuses. */
function valueOf(form: Form): object {
  const { timeout_ms: timeout, base_ms: base, cap_ms: cap, give_up_on: giveUpOn, ...others } = typedIn(form);
  const numbers = Object.entries(others).filter(([, text]) => text !== "");
  const times = timeout === "" ? {} : { timeout_ms: durationIn(timeout) };
  const backoff = base === "" && cap === "" ? {} : { backoff: { base_ms: durationIn(base), cap_ms: durationIn(cap) } };
  const patterns = giveUpOn === "" ? {} : { give_up_on: giveUpOn.split(",").map((text) => numberIn(text.trim())) };
  const limits = Object.fromEntries(numbers.map(([name, text]) => [name, numberIn(text)]));
  return { ...limits, ...times, ...backoff, ...patterns };
}

function durationIn(text: string): number | string {
  return readDuration(text) ?? text;
}

function numberIn(text: string): number | string {
  return /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : text;
}
