/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { KeyView } from "../../accounts/key-schemas.ts";
import type { RuleRow } from "../../core/account-rules.ts";
import type { AuditRow } from "../../core/audit.ts";
import { notFound } from "../../core/domain-error.ts";
import { RULE_HITS_MS, RULES_MAX } from "../../core/limits.ts";
import { authorize, describeActor, mayDo } from "../../core/roles.ts";
import type { Form } from "../../http/body.ts";
import type { Person } from "../../http/session.ts";
import { RuleParams } from "../../rules/routes.ts";
import type { RuleHits } from "../../rules/service.ts";
import {
  type ConditionName,
  ruleDefinition,
  type DryRunJson,
  type RuleDefinition,
  type RuleEffect,
  type RuleJson,
  serializeRules,
  type DryRunDifference,
} from "../../rules/schemas.ts";
import { PostForm, Submit } from "../../ui/form.tsx";
import { Icon } from "../../ui/icons.tsx";
import { render, actionPath } from "../../ui/layout.tsx";
import {
  ago,
  Card,
  Dot,
  Facts,
  LinkButton,
  Name,
  Problem,
  sentence,
  UntrustedBlock,
  untrusted,
  type Tone,
} from "../../ui/parts.tsx";
import { duration, number, counted } from "../../ui/text.ts";
import { EMPTY_FORM, filled, type FormState, type RefusedForm, unlessGone, VERSION_FIELD } from "../frame/forms.ts";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { DAY_LABELS, EFFECT_LABELS, PERIOD_LABELS, RuleForm, ruleFields, ruleIn, TRY_FIELD } from "./rule-form.tsx";
import { TEMPLATES } from "./rule-templates.ts";
import { List, OfRow, RowAction, RowLink, RowMenu } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage, templatePath } from "../frame/settings-frame.tsx";
import { visibleText } from "../../receipts/visible-text.ts";

const RULES_PATH = SETTINGS_PATHS.rules;

const BACK = { href: RULES_PATH, name: "Rules" } as const;

/** The rules in order. Owners change them, approvers read them, readers see only names, effects and messages. */
async function rulesPage(deps: PageDeps, user: Person, problem: string | null = null): Promise<string> {
  const { ruleService, clock } = deps;
  const now = clock.now();
  const rules = serializeRules(await ruleService.list(user.caller), user.role, ruleService.warnings(user.caller));
  const [mayChange, mayRead] = [mayDo(user.role, "manage"), mayDo(user.role, "approve")];
  const keys = mayChange ? await deps.keyService.list(user.caller) : [];
  const hits = mayRead ? await ruleService.hits(user.caller) : null;
  const last = mayChange ? await ruleService.lastChange(user.caller) : null;
  const create = (
    <LinkButton href={`${RULES_PATH}/new`} look="main">
      Create a rule
    </LinkButton>
  );
  return render(
    <SettingsPage
      user={user}
      section="Rules"
      intro="Rules are checked in this order: the first that applies to a request decides. If none applies, the key’s hold decides."
      actions={mayChange && rules.length < RULES_MAX ? create : undefined}
      now={now}
    >
      <Problem text={problem} />
      {last === null ? null : <Undo user={user} last={last} now={now} />}
      <List
        title="Rules"
        rows={rules}
        columns={[
          ["Rule", (rule) => ruleCell(rule, hits, now), "main"],
          ["Effect", ({ effect }) => <Dot tone={EFFECT_TONES[effect]}>{EFFECT_LABELS[effect]}</Dot>],
          ...(mayRead
            ? [["Applies to", (rule: RuleJson) => <Conditions rule={rule} keys={keys} />, "wide"] as const]
            : []),
        ]}
        actions={mayChange ? (rule) => ruleActions(user, rule, rules.length - 1) : undefined}
        empty={{
          icon: "rules",
          title: "No rules yet",
          text: "A rule says which calls are sent, held for a person, or refused: by method, host, path, time or content.",
        }}
      />
      {mayChange ? (
        <Card id="templates" title="Start from a template">
          <ul class="templates">
            {TEMPLATES.map(({ name, title, about }) => (
              <li>
                <a href={templatePath(name)}>{title}</a>
                <span class="says">{about}</span>
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
    </SettingsPage>,
  );
}

/** "Ann removed “Payments” just now. Undo" */
function Undo({ user, last, now }: { readonly user: Person; readonly last: AuditRow; readonly now: Date }) {
  const { seq, at, actor, detail } = last;
  const [change, name] = [String(detail["change"]), String(detail["name"])];
  return (
    <div class="between" id="undo">
      <p class="quiet">
        {sentence`${<Name text={describeActor(actor).name} />} ${change} ${<Name text={name} />} ${ago(at, now)}.`}
      </p>
      <RowAction
        user={user}
        path={`${RULES_PATH}/undo`}
        fields={[["seq", String(seq)]]}
        look="plain"
        name="Undo"
        of={untrusted(name)}
      />
    </div>
  );
}

/** A rule's cell. `hits` is null if this reader may not see them. */
function ruleCell(rule: RuleJson, hits: RuleHits | null, now: Date) {
  const { id, position, version, name, message, changed_at: at, changed_by: by, warnings = [] } = rule;
  return (
    <div class="rule-name" id={id}>
      <span class="quiet">{position + 1}</span>
      <div>
        <Name text={name} />
        {message === undefined ? null : <span class="says">“{untrusted(message)}”</span>}
        {warnings.map((text) => (
          <span class="says says-wait">{untrusted(text)}</span>
        ))}
        <span class="says">
          {`Version ${version}`}
          {at === undefined || by === undefined
            ? null
            : sentence` · ${ago(new Date(at), now)} by ${untrusted(describeActor(by).name)}`}
        </span>
        {hits === null ? null : <span class="says">{hitsText(hits, id)}</span>}
      </div>
    </div>
  );
}

/** "12 held, 3 refused in 7 days". */
function hitsText({ byRule, isWhole }: RuleHits, id: string): string {
  const of = isWhole ? `in ${duration(RULE_HITS_MS)}` : "lately";
  const hits = byRule.get(id) ?? [];
  const said = HIT_WORDS.flatMap(([effect, word]) => {
    const count = hits.filter(([, did]) => did === effect).length;
    return count === 0 ? [] : `${number(count)} ${word}`;
  });
  return said.length === 0 ? `No hit ${of}` : `${said.join(", ")} ${of}`;
}

const HIT_WORDS = [
  ["hold", "held"],
  ["refuse", "refused"],
  ["allow", "let pass"],
] as const;

interface ConditionsProps {
  readonly rule: Omit<RuleDefinition, "name" | "effect">;
  /** Names the keys. A key that is missing here appears by its id. */
  readonly keys: readonly KeyView[];
}

/** "POST to api.example.com under /payments, when action.body.amount > 1000". */
function Conditions({ rule, keys }: ConditionsProps) {
  const { methods, hosts, path, credentials, body_kind: kind, body_bytes: bytes, between, when, sum } = rule;
  const { more_than: calls } = rule;
  const named = rule.keys?.map((id) => keys.find((key) => key.id === id)?.name ?? id);
  const said: Readonly<Record<ConditionName, Child>> = {
    methods: methods === undefined ? "Every request" : orList(methods),
    hosts: hosts && sentence` to ${orList(hosts)}`,
    path: path && sentence` under ${untrusted(path)}`,
    keys: named && sentence` by the key ${orList(named)}`,
    credentials: credentials && sentence` with the credential ${orList(credentials)}`,
    body_kind: kind && ` ${BODY_WORDS[kind]}`,
    body_bytes: bytes && `${kind === undefined ? " with a body" : ""} of more than ${number(bytes.over)} bytes`,
    between:
      between && sentence`, from ${between.from} to ${between.to}${onDays(between)} (${untrusted(between.timezone)})`,
    when: when && sentence`, when ${expression(when)}`,
    sum:
      sum &&
      sentence`, beyond a sum of ${String(sum.limit)} of ${(
        <code>{untrusted(sum.member)}</code>
      )} in ${PERIOD_LABELS[sum.per]}${forSame(sum.same)} (${untrusted(sum.timezone)})`,
    more_than:
      calls &&
      sentence`, beyond ${number(calls.count)} calls in ${number(calls.minutes)} minutes${forSame(calls.same)}`,
  };
  return <>{Object.values(said)}</>;
}

function expression(text: string) {
  if (text.length > LINE_CHARS || text.includes("\n")) return <UntrustedBlock label="Expression" text={text} />;
  return <code>{untrusted(text)}</code>;
}

/** Longer expressions get lines of their own. */
const LINE_CHARS = 80;

const BODY_WORDS: Readonly<Record<NonNullable<RuleDefinition["body_kind"]>, string>> = {
  none: "without a body",
  json: "with a JSON body",
  form: "with a form",
  text: "with a text",
  base64: "with bytes",
};

function onDays({ days }: NonNullable<RuleDefinition["between"]>): string {
  return days === undefined ? "" : ` on ${ALL_OF.format(days.map((day) => DAY_LABELS[day]))}`;
}

function forSame(same: string | undefined): Child {
  return same === undefined ? "" : sentence` for the same ${untrusted(same)}`;
}

const ANY_OF = new Intl.ListFormat("en-GB", { type: "disjunction" });

const ALL_OF = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** Names shown. Further ones are only counted. */
const NAMED_MAX = 5;

function orList(texts: readonly string[]): Child {
  const more = texts.length - NAMED_MAX;
  const named = more > 1 ? [...texts.slice(0, NAMED_MAX), `${more} more`] : texts;
  return ANY_OF.formatToParts(named).map(({ type, value }) => (type === "element" ? untrusted(value) : value));
}

const DIRECTIONS = ["up", "down"] as const;

/** The buttons of a rule. They have ids, so that focus returns to them after a move. */
function ruleActions(user: Person, { id, name, position }: RuleJson, last: number) {
  const of = untrusted(name);
  return (
    <div>
      <PostForm user={user} action={`${RULES_PATH}/${id}/move`}>
        {DIRECTIONS.map((direction) => (
          <button
            type="submit"
            class="button-plain"
            id={`${direction}-${id}`}
            name="direction"
            value={direction}
            disabled={position === (direction === "up" ? 0 : last)}
            title={`Move ${direction}`}
          >
            <Icon name={direction} />
            <span class="visually-hidden">
              Move {direction}
              <OfRow of={of} />
            </span>
          </button>
        ))}
      </PostForm>
      <LinkButton href={`${RULES_PATH}/${id}`}>
        Change
        <OfRow of={of} />
      </LinkButton>
      <RowMenu of={name} items={[]} ends={<RowLink href={`${RULES_PATH}/${id}/remove`} name="Remove" of={of} />} />
    </div>
  );
}

interface FormPageProps {
  readonly typed: FormState;
  /** Null for a new rule. */
  readonly row: RuleRow | null;
  readonly todo?: string | undefined;
  readonly result?: DryRunJson;
}

async function ruleFormPage(deps: PageDeps, user: Person, props: FormPageProps): Promise<string> {
  const { row, result, ...form } = props;
  const [rules, keys] = await Promise.all([deps.ruleService.list(user.caller), deps.keyService.list(user.caller)]);
  return render(
    <SettingsPage
      user={user}
      section="Rules"
      title={row === null ? "Create a rule" : untrusted(ruleDefinition(row).name)}
      windowTitle={row === null ? "Create a rule" : visibleText(ruleDefinition(row).name)}
      back={BACK}
      intro="It is in force as soon as it is saved, also for accepted calls that have not been sent. What awaits approval keeps waiting."
    >
      {result === undefined ? null : <TriedRule result={result} now={deps.clock.now()} />}
      <RuleForm
        user={user}
        {...form}
        keys={keys}
        changed={row}
        others={rules.map((other) => [other.id, ruleDefinition(other).name])}
      />
    </SettingsPage>,
  );
}

async function removePage(deps: PageDeps, user: Person, row: RuleRow, problem?: string): Promise<string> {
  const rule = ruleDefinition(row);
  const keys = await deps.keyService.list(user.caller);
  return render(
    <SettingsPage
      user={user}
      section="Rules"
      title="Remove this rule?"
      windowTitle={`Remove ${visibleText(rule.name)}?`}
      back={BACK}
    >
      <PostForm
        user={user}
        action={`${RULES_PATH}/${row.id}/remove`}
        class="card"
        fields={[[VERSION_FIELD, row.version]]}
      >
        <Problem text={problem} />
        <p>{REMOVED[rule.effect]}</p>
        <Facts
          rows={[
            ["Name", <Name text={rule.name} />],
            ["Effect", <Dot tone={EFFECT_TONES[rule.effect]}>{EFFECT_LABELS[rule.effect]}</Dot>],
            ["Applies to", <Conditions rule={rule} keys={keys} />],
          ]}
        />
        <Submit look="danger" cancel={RULES_PATH}>
          Remove rule
        </Submit>
      </PostForm>
    </SettingsPage>,
  );
}

const REMOVED: Readonly<Record<RuleEffect, string>> = {
  allow: "The next rules decide on what it allows, immediately.",
  hold: "What it would hold is decided by the next rules, immediately. What it has held still awaits a decision.",
  refuse: "What it refuses is decided by the next rules, immediately.",
};

export function rulePages(deps: PageDeps) {
  const { ruleService, answer } = deps;
  const findRule = async ({ caller }: Person, id: string): Promise<RuleRow> => {
    authorize(caller, "manage");
    const row = (await ruleService.list(caller)).find((one) => one.id === id);
    if (row === undefined) throw notFound("rule");
    return row;
  };
  const tried = async (person: Person, form: Form, row: RuleRow | null): Promise<Response> => {
    const { definition, before } = ruleIn(form);
    const result = await ruleService.tryRule(person.caller, definition, { id: row?.id ?? null, before });
    const typed = { ...EMPTY_FORM, values: form };
    return deps.pageFor(person, (user) => ruleFormPage(deps, user, { typed, row, result }));
  };
  const add = answer(
    async ({ person, form }) => {
      if (form.get(TRY_FIELD) !== undefined) return tried(person, form, null);
      const { definition, before } = ruleIn(form);
      const { row } = await ruleService.add(person.caller, definition, before, true);
      return `${RULES_PATH}#${row.id}`;
    },
    ({ person }, typed) => ruleFormPage(deps, person, { typed, row: null }),
  );
  const change = answer<ById>(
    async ({ person, params: { id }, form }) => {
      const row = await findRule(person, id);
      if (form.get(TRY_FIELD) !== undefined) return tried(person, form, row);
      await ruleService.replace(person.caller, id, ruleIn(form).definition, Number(form.get(VERSION_FIELD)));
      return `${RULES_PATH}#${id}`;
    },
    async ({ person, params: { id } }, typed) => ruleFormPage(deps, person, { typed, row: await findRule(person, id) }),
  );
  const remove = answer<ById>(
    async ({ person, params: { id }, form }) => {
      await unlessGone(ruleService.remove(person.caller, id, Number(form.get(VERSION_FIELD))));
      return RULES_PATH;
    },
    async ({ person, params: { id } }, { problem }) => removePage(deps, person, await findRule(person, id), problem),
  );
  /** The message if a rule is gone, or the order names other rules. */
  const changedSince =
    (words: string) =>
    ({ person }: { readonly person: Person }, { code, problem }: RefusedForm) =>
      rulesPage(deps, person, code === "validation_error" || code === "not_found" ? words : problem);
  const undo = answer(async ({ person, form }) => {
    await ruleService.undo(person.caller, Number(form.get("seq")));
    return RULES_PATH;
  }, changedSince("The rules have changed since then. Look at them again."));
  const move = answer<ById>(async ({ person, params: { id }, form }) => {
    authorize(person.caller, "manage");
    const isUp = form.get("direction") === "up";
    const ids = (await ruleService.list(person.caller)).map((row) => row.id);
    const from = ids.indexOf(id);
    if (from === -1) throw notFound("rule");
    const to = isUp ? from - 1 : from + 1;
    const other = ids[to];
    if (other !== undefined) await ruleService.reorder(person.caller, ids.with(from, other).with(to, id));
    // At either end of the list, the pressed button is disabled and can't have the focus.
    const goesOn = isUp ? to > 0 : to < ids.length - 1;
    return `${RULES_PATH}#${goesOn === isUp ? "up" : "down"}-${id}`;
  }, changedSince("Another person has just changed the rules. Look at their order, then try again."));
  const hooks = { params: RuleParams };
  return personPages(deps, { [`${RULES_PATH}/undo`]: RULES_PATH, [`${RULES_PATH}/:id/move`]: RULES_PATH })
    .get(RULES_PATH, ({ person }) => rulesPage(deps, person))
    .post(RULES_PATH, add)
    .get(`${RULES_PATH}/new`, ({ context, person }) => {
      authorize(person.caller, "manage");
      const wanted = new URLSearchParams(context.search).get("template");
      const template = TEMPLATES.find(({ name }) => name === wanted);
      const typed = template === undefined ? filled({ effect: "hold" }) : ruleFields(template.rule);
      return ruleFormPage(deps, person, { typed, row: null, todo: template?.todo });
    })
    .post(`${RULES_PATH}/undo`, undo)
    .get(
      `${RULES_PATH}/:id`,
      async ({ person, params: { id } }) => {
        const row = await findRule(person, id);
        return ruleFormPage(deps, person, { typed: ruleFields(ruleDefinition(row)), row });
      },
      hooks,
    )
    .post(`${RULES_PATH}/:id`, change, hooks)
    .get(
      `${RULES_PATH}/:id/remove`,
      async ({ person, params: { id } }) => removePage(deps, person, await findRule(person, id)),
      hooks,
    )
    .post(`${RULES_PATH}/:id/remove`, remove, hooks)
    .post(`${RULES_PATH}/:id/move`, move, hooks);
}

const FATES: Readonly<Record<RuleEffect, string>> = { allow: "Sent", hold: "Held", refuse: "Refused" };

const EFFECT_TONES: Readonly<Record<RuleEffect, Tone>> = { allow: "good", hold: "wait", refuse: "bad" };

/** Rows shown. Further ones are only counted. */
const ROWS_MAX = 8;

/** Shows beside a rule's form what the rules would have done with it. */
function TriedRule({ result, now }: { readonly result: DryRunJson; readonly now: Date }) {
  const { looked_at: lookedAt, from, allowed, held, refused, undecidable, unknown, uncertain, differing } = result;
  if (from === null) {
    return (
      <Card id="tried" title="On the newest requests">
        <p>There are no requests yet to try it on.</p>
      </Card>
    );
  }
  const rows = result.differences.slice(0, ROWS_MAX);
  const notes = [
    undecidable > 0 && `Held because a rule can't be decided: ${number(undecidable)}. They lack what it names.`,
    uncertain > 0 &&
      `Not certain: ${counted(uncertain, "request")} under a budget or count, to which older requests, retries and failed calls may have added.`,
    unknown > 0 && `Not known: ${counted(unknown, "request")} that a rule refused then. They are not stored.`,
  ];
  return (
    <Card id="tried" title={`On the newest ${counted(lookedAt, "request")}`}>
      <p>
        {sentence`With this rule, ${number(allowed)} would have been sent, ${number(held)} held and ${number(refused)} refused. The oldest is from ${ago(new Date(from), now)}.`}
        {held === 0 ? null : ` ${decidedText(result)}`}
      </p>
      {notes.map((note) => (note === false ? null : <p class="quiet">{note}</p>))}
      {differing === 0 ? (
        <p>The rules in force do the same.</p>
      ) : (
        <List
          title="What differs from the rules in force"
          rows={rows}
          columns={[
            ["Request", (row) => requestCell(row, now), "wide"],
            [
              "With this rule",
              // "Held, not sent", if the rules in force would send it.
              ({ in_force: inForce, tried }) => (
                <Dot tone={EFFECT_TONES[tried]}>{`${FATES[tried]}, not ${FATES[inForce].toLowerCase()}`}</Dot>
              ),
            ],
            ["Rule", ({ rule }) => (rule === null ? "none" : <Name text={rule} />)],
          ]}
        />
      )}
      {differing > rows.length ? (
        <p class="quiet">{`${counted(differing - rows.length, "more request")} would have been handled differently.`}</p>
      ) : null}
    </Card>
  );
}

/** "Of those held, people had approved 9 and rejected 2, and 1 had no decision." Calls without one were mostly sent directly. */
function decidedText({ held_approved: approved, held_rejected: rejected, held_undecided: undecided }: DryRunJson) {
  const open = undecided === 0 ? "" : `, and ${number(undecided)} had no decision`;
  return `Of those held, people had approved ${number(approved)} and rejected ${number(rejected)}${open}.`;
}

function requestCell({ id, title, method, url, created_at: at, reason }: DryRunDifference, now: Date) {
  const call = untrusted(`${method} ${url}`);
  return (
    <div>
      <a href={actionPath(id)}>{title === undefined ? call : <Name text={title} />}</a>
      <span class="says">
        {title === undefined ? null : <>{call} · </>}
        {ago(new Date(at), now)}
      </span>
      {reason === null ? null : <span class="says">{untrusted(reason)}</span>}
    </div>
  );
}
