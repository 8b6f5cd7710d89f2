import { firstAction } from "../accounts/first-action.ts";
import type { KeyService } from "../accounts/keys.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { createCheckCreate } from "../actions/create-schema.ts";
import type { ActionService } from "../actions/service.ts";
import { actionPath } from "../ui/layout.tsx";
import type { PauseService } from "../pauses/service.ts";
import { KeyParams } from "../accounts/routes.ts";
import type { KeyView } from "../accounts/schemas.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import { HTTP_METHODS } from "../core/action.ts";
import type { Ids } from "../core/ids.ts";
import { UNFINISHED_ON_REVOKE, type UnfinishedOnRevoke } from "../core/pause.ts";
import { FLASH_MS_MAX, KEYS_SHOWN_MAX, CREATED_KEYS_REMEMBERED_MAX } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { keysPage, revokeKeyPage } from "./keys.tsx";
import { answerForm, type ById, filled } from "./forms.tsx";
import { KEY_FORM, madeKeyPage, NEW_KEY, newKeyPage } from "./new-key.tsx";
import {
  type Flash,
  type AnswerPerson,
  createPersonRoutes,
  type Person,
  type AnswerById,
  type PersonRouteDeps,
} from "../http/session.ts";
import type { Form } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";

interface KeyPageDeps extends PersonRouteDeps {
  readonly keyService: KeyService;
  readonly authenticate: (authorization: string | null) => Promise<Caller>;
  readonly actionService: Pick<ActionService, "create">;
  readonly checkTarget: Parameters<typeof createCheckCreate>[0]["checkTarget"];
  readonly pauseService: Pick<PauseService, "list">;
  readonly flash: Flash;
  readonly baseUrl: string;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "request">;
}

/** The key pages. They use the same service as /v1/keys. A new key is shown on the page after its form, for some minutes. */
export function keyPages(deps: KeyPageDeps) {
  const { keyService, pauseService, personOf, formOf, clock } = deps;
  const list: AnswerPerson = async ({ context: { search }, person }) => {
    const query = new URLSearchParams(search);
    const keys = await keyService.listWithUse(person.caller);
    const first = (pageIn(query) - 1) * KEYS_SHOWN_MAX;
    const shown = keys.slice(first, first + KEYS_SHOWN_MAX);
    const isMore = keys.length > first + shown.length && shown.length > 0;
    const found = keys.find(({ id, revokedAt }) => id === query.get("revoked") && revokedAt !== null);
    const revoked =
      found === undefined ? null : { ...found, ...(await keyService.unfinished(person.caller, found.id)) };
    const former = await keyService.ofFormer(person.caller);
    const next = isMore ? `/keys?page=${pageIn(query) + 1}` : null;
    const pauses = await pauseService.list(person.caller);
    const paused = new Map(pauses.flatMap((pause) => (pause.kind === "key" ? [[pause.subject, pause]] : [])));
    return page("own", keysPage({ user: person, keys: shown, next, revoked, former, paused, now: clock.now() }));
  };
  const ask: AnswerById = async ({ person, params: { id } }) => {
    const key = await liveKey(keyService, person, id);
    if (key === null) return seeOther("own", `/keys?revoked=${id}`);
    const left = await keyService.unfinished(person.caller, id);
    return page("own", revokeKeyPage({ user: person, of: key, left, now: clock.now() }));
  };
  const revoke = answerForm<ById>(formOf, async ({ person, params: { id }, form }) => {
    await keyService.revoke(person.caller, id, unfinishedIn(form));
    return `/keys?revoked=${id}`;
  });
  const hooks = { params: KeyParams };
  return createPersonRoutes(personOf)
    .get("/keys", list)
    .post("/keys", create(deps))
    .get("/keys/new", async ({ context, person }) => {
      const keys = await keyService.list(person.caller);
      const replaced = keys.find(({ id }) => id === new URLSearchParams(context.search).get("replaces"));
      const typed = filled({ ...NEW_KEY, ...(replaced !== undefined && likeKey(replaced)) });
      return page("own", newKeyPage({ user: person, typed, replaced, formId: deps.ids.request() }));
    })
    .post("/keys/:id/test", test(deps), hooks)
    .get("/keys/:id/made", made(deps), hooks)
    .get("/keys/:id/revoke", ask, hooks)
    .post("/keys/:id/revoke", revoke, hooks);
}

/** The defaults of a key that replaces this one. */
function likeKey({ name, role, hold, scope, hosts, methods, dailyActions, expiresAt }: KeyView) {
  return {
    name,
    role,
    hold,
    scope,
    // As the field has it: minutes, UTC.
    expires_at: expiresAt?.toISOString().slice(0, 16) ?? "",
    hosts: (hosts ?? []).join("\n"),
    daily_actions: dailyActions?.toString() ?? "",
    ...Object.fromEntries((methods ?? []).map((method) => [`method_${method}`, "yes"])),
  };
}

interface MadeKey {
  readonly key: string;
  readonly closesSignUps: boolean;
}

function made({ keyService, flash, baseUrl }: KeyPageDeps): AnswerById {
  return async ({ context, person, params: { id } }) => {
    // Safe: only `create` below writes a flash for this path.
    const flashed = flash.read(context, person) as MadeKey | null;
    const row = (await keyService.list(person.caller)).find((one) => one.id === id);
    if (flashed === null || row === undefined) {
      throw new DomainError(
        "not_found",
        "A new key is shown only once, in the browser that created it. If you did not save it, revoke it and create another.",
      );
    }
    return page("own", madeKeyPage({ user: person, made: row, ...flashed, baseUrl }));
  };
}

type Made = Awaited<ReturnType<KeyService["create"]>>;

function create({ keyService, formOf, flash, baseUrl, clock, ids }: KeyPageDeps): AnswerPerson {
  const once = createOnce<Made>(clock);
  return answerForm(
    formOf,
    async ({ person, form }) => {
      const formId = (form.get("form_id") ?? "").slice(0, FORM_ID_CHARS_MAX);
      const request = KEY_FORM.check(form, keyMembersIn(form));
      const make = () => keyService.create(person.caller, request);
      const { row, key, closesSignUps } =
        formId === "" ? await make() : await once(`${person.sessionHash} ${formId}`, make);
      const flashed: MadeKey = { key, closesSignUps };
      return flash.showSecretOnce(person, `/keys/${row.id}/made`, flashed, () =>
        page("own", madeKeyPage({ user: person, made: row, baseUrl, ...flashed })),
      );
    },
    async ({ person, form }, typed) => {
      const replaces = form.get("replaces") ?? "";
      const replaced = replaces === "" ? undefined : (await keyService.list(person.caller)).find(isKey(replaces));
      return newKeyPage({ user: person, typed, replaced, formId: ids.request() });
    },
    SHOWN_ON_FORM,
  );
}

function isKey(wanted: string) {
  return ({ id }: KeyView): boolean => id === wanted;
}

/**
 * Sends the test call with a key that was just made and is still shown, so that it shows what the key may do. The page has
 * the key, and sends it along: nobody else can act as it by the rights of a person.
 */
function test({ authenticate, actionService, checkTarget, formOf, clock, baseUrl }: KeyPageDeps): AnswerById {
  const checkCreate = createCheckCreate({ checkTarget });
  return answerForm<ById>(formOf, async ({ person, params: { id }, form }) => {
    authorize(person.caller, "manage");
    const caller = await authenticate(`Bearer ${form.get("key") ?? ""}`).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === "unauthorized") throw noSuchKey();
      throw error;
    });
    if (caller.keyId !== id || caller.accountId !== person.caller.accountId) throw noSuchKey();
    const { request, reason } = checkCreate({
      value: { ...firstAction(baseUrl), title: "Test of a new key" },
      textOf: () => "",
      idempotencyKey: null,
      hold: caller.hold,
      role: caller.role,
      now: clock.now(),
    });
    const { action } = await actionService.create(caller, request, { reason });
    return actionPath(action.id);
  });
}

function noSuchKey(): DomainError {
  return new DomainError("not_found", "There is no such key.");
}

const FORM_ID_CHARS_MAX = 64;

/**
 * Runs `make` once per name. A form that is sent again, by a double click or a reload, gets the first result. After a
 * failure it runs again.
 */
function createOnce<T>(clock: Pick<Clock, "monotonicMs">) {
  const done = new Map<string, { readonly untilMs: number; readonly result: Promise<T> }>();
  return async (name: string, make: () => Promise<T>): Promise<T> => {
    const nowMs = clock.monotonicMs();
    for (const [oldest, { untilMs }] of done) {
      if (untilMs > nowMs && done.size < CREATED_KEYS_REMEMBERED_MAX) break;
      done.delete(oldest);
    }
    const before = done.get(name);
    if (before !== undefined) return before.result;
    const result = make();
    done.set(name, { untilMs: nowMs + FLASH_MS_MAX, result });
    try {
      return await result;
    } catch (error) {
      done.delete(name);
      throw error;
    }
  };
}

/** The members that the form has otherwise than the API. It always has a scope, but only agent keys use it. */
function keyMembersIn(form: Form) {
  const hosts = linesOf(form.get("hosts") ?? "");
  const methods = HTTP_METHODS.filter((method) => form.get(`method_${method}`) === "yes");
  const end = (form.get("expires_at") ?? "").trim();
  return {
    hold: form.get("hold") ?? null,
    scope: form.get("role") === "agent" ? (form.get("scope") ?? null) : null,
    weaker_hold: form.get("weaker_hold") === "yes",
    inherit_limits: form.get("limits") !== "shown",
    hosts: hosts.length === 0 ? null : hosts,
    methods: methods.length === 0 ? null : methods,
    expires_at: end === "" ? null : zoned(end),
  };
}

/** Browsers send neither seconds, if they are 0, nor a time zone. */
function zoned(end: string): string {
  return /T\d\d:\d\d$/.test(end) ? `${end}:00Z` : `${end}Z`;
}

function linesOf(text: string): readonly string[] {
  return text
    .split(/[\r\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** These errors are shown on the form. */
const SHOWN_ON_FORM: ReadonlySet<ErrorCode> = new Set(["validation_error", "too_many_keys"]);

/** Throws `validation_error` for any other value. */
function unfinishedIn(form: Form): UnfinishedOnRevoke {
  const said = form.get("unfinished") ?? "keep";
  const found = UNFINISHED_ON_REVOKE.find((one) => one === said);
  if (found !== undefined) return found;
  throw new DomainError("validation_error", "Choose what happens to its unfinished actions: keep, pause or cancel.");
}

/** Null if it is revoked already. Throws `not_found`. */
async function liveKey(keyService: KeyService, { caller }: Person, id: string): Promise<KeyView | null> {
  const key = (await keyService.list(caller)).find((one) => one.id === id);
  if (key === undefined) throw new DomainError("not_found", "There is no such key.");
  return key.revokedAt === null ? key : null;
}

/** From 1; 1 if it is not a number. */
function pageIn(query: URLSearchParams): number {
  const text = query.get("page") ?? "";
  return /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 1;
}
