import type { CreateRule, DryRun, DryRunRules, ReplaceRules, Rule } from "../../client/api.ts";
import { type CliCommand, JSON_OPTION } from "../command.ts";
import { given, several, severalMethods, wholeNumber } from "../option-values.ts";
import { readValue, UsageError } from "../io.ts";
import { visible } from "../../observability/terminal.ts";
import { jsonText, parseObject } from "../exact-json.ts";
import type { Session } from "../session.ts";

type Definition = ReplaceRules["rules"][number];

export function addRuleCommands(program: CliCommand): void {
  const rules = program.serviceCommand("rules", "show or set what is held, refused or allowed (set: owner key)");
  rules
    .serviceCommand("list", "show the rules in the order in which they are asked", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printLines }) =>
      printLines(await client.listRules(), "There are no rules.", ruleText),
    );
  rules
    .serviceCommand("add <name>", "add a rule behind all others, or --before one of them")
    .choice("--effect <effect>", "hold: a person decides; refuse: nothing is created; allow: no later rule is asked", [
      "hold",
      "refuse",
      "allow",
    ])
    .option("--when <expression>", "a condition in CEL, such as 'action.body.amount > 5000'; @file and - read it")
    .member("keys", "--key-id <id>", "a key whose calls it is about; several: repeat it", several)
    .member("methods", "--method <method>", "a method; several: repeat it", severalMethods)
    .member("hosts", "--host <host>", "a host, or *.example.com; several: repeat it", several)
    .option("--path <path>", "the beginning of the path, in whole segments; * stands for one")
    .member(
      "credentials",
      "--credential <name>",
      "a credential that the call is made with; several: repeat it",
      several,
    )
    .choice("--body-kind <kind>", "what the body is", ["none", "json", "form", "text", "base64"])
    .member("body_bytes", "--body-over <bytes>", "the body has more bytes", (text) => ({
      over: wholeNumber("body-over", 0)(text),
    }))
    .option("--between <times>", "a time of day, such as 18:00-08:00; takes --timezone")
    .option("--days <days>", "for --between: the days on which it begins, such as mon,tue")
    .option("--timezone <zone>", "for --between and --sum: a time zone, such as Europe/Berlin")
    .option("--more-than <calls>", "only what is more than so many calls; takes --minutes", wholeNumber("more-than", 1))
    .option("--minutes <minutes>", "for --more-than: within so many minutes", wholeNumber("minutes", 1))
    .option("--sum <member>", "only what goes beyond a budget of a number, such as body.amount; takes --limit, --per")
    .option("--limit <number>", "for --sum: the most that passes")
    .choice("--per <period>", "for --sum: by the clocks of --timezone (default UTC)", ["hour", "day", "month"])
    .option("--same <what>", "for both: counted for each key, host, request or metadata.<name> alone")
    .option("--message <text>", "shown to the agent whose call is held or refused")
    .option("--explain", "show agents what the rule compares")
    .option("--before <id>", "the rule that it is put before")
    .examples([
      [
        `outgate rules add "Big payments" --effect hold --path /payments --when 'action.body.amount > 5000'`,
        "a person decides on payments above 5000",
      ],
      [
        `outgate rules add "Loop" --effect hold --more-than 20 --minutes 5 --same request`,
        "a person decides when one call is made again and again",
      ],
      [
        `outgate rules add "Day's budget" --effect hold --sum body.amount --limit 10000 --per day --same key`,
        "a person decides on what goes beyond 10000 a day",
      ],
    ])
    .option(...JSON_OPTION)
    .sessionAction(async (session, name: string, options: AddOptions) => {
      const { effect, when, between, days, timezone, more_than, minutes, sum, limit, per, same, ...more } = options;
      if (effect === undefined) throw new UsageError("rules add takes --effect hold, refuse or allow.");
      const rule: CreateRule = {
        ...more,
        name,
        effect,
        ...given({
          when: when === undefined ? undefined : (await readValue(when, session.io)).trim(),
          between: windowIn(given({ between, days, timezone, sum })),
        }),
        ...countsIn(given({ more_than, minutes, sum, limit, per, same, timezone })),
      };
      session.print(await session.client.createRule(rule), ruleText);
    });
  rules
    .serviceCommand("remove <id>", "remove a rule")
    .sessionAction(({ client, done }, id: string) => done(client.removeRule(id), `${id} is removed.`));
  rules
    .serviceCommand("export", "print the rules as the file that apply takes")
    .sessionAction(async ({ client, io }) => {
      const { data } = await client.listRules();
      io.out(jsonText({ rules: data.map(toDefinition) }, true));
    });
  rules
    .serviceCommand(
      "test <file>",
      "tell what the rules of a file would have done with past requests; - reads standard input",
    )
    .option("--last <number>", "try them on the newest so many (default 1000)", wholeNumber("last", 1))
    .option(...JSON_OPTION)
    .sessionAction(async (session, file: string, options: Pick<DryRunRules, "last">) => {
      const wanted = await readRules(session, file);
      session.print(await session.client.dryRunRules({ ...wanted, ...options }), testText);
    });
  rules
    .serviceCommand("apply <file>", "put the rules of a file in force in place of all others; - reads standard input")
    .option("--dry-run", "print what would change, and change nothing")
    .option(...JSON_OPTION)
    .sessionAction(async (session, file: string, { dry_run: isDryRun = false }: { dry_run?: boolean }) => {
      const { client, print } = session;
      const wanted = await readRules(session, file);
      const before = (await client.listRules()).data.map(toDefinition);
      // Checks the rules.
      if (isDryRun) await client.dryRunRules({ ...wanted, last: 1 });
      // The definitions as the service writes them, which may leave members out.
      const after = isDryRun ? wanted.rules : (await client.replaceRules(wanted)).data.map(toDefinition);
      print(compareRules(before, after), (difference) => differenceText(difference, isDryRun));
    });
}

interface AddOptions
  extends Partial<Omit<CreateRule, "name" | "between" | "more_than" | "sum">>, WindowOptions, CountOptions {}

interface WindowOptions {
  readonly between?: string;
  readonly days?: string;
  readonly timezone?: string;
  readonly sum?: string;
}

interface CountOptions {
  readonly more_than?: number;
  readonly minutes?: number;
  readonly sum?: string;
  readonly limit?: string;
  readonly per?: NonNullable<CreateRule["sum"]>["per"];
  readonly same?: string;
  readonly timezone?: string;
}

function countsIn(options: CountOptions): Pick<CreateRule, "more_than" | "sum"> {
  const { more_than: count, minutes, sum: member, limit, per, timezone = "UTC", same } = options;
  if ((count === undefined) !== (minutes === undefined)) throw new UsageError("--more-than takes --minutes.");
  if ((member === undefined) !== (limit === undefined) || (member === undefined) !== (per === undefined))
    throw new UsageError("--sum takes --limit and --per.");
  if (same !== undefined && count === undefined && member === undefined)
    throw new UsageError("--same is for --more-than and --sum.");
  if (limit !== undefined && !/^\d{1,16}(\.\d{1,9})?$/.test(limit))
    throw new UsageError("--limit takes a number such as 10000 or 99.5.");
  const group = given({ same });
  const calls = count === undefined || minutes === undefined ? undefined : { count, minutes, ...group };
  const budget =
    member === undefined || per === undefined ? undefined : { member, limit: Number(limit), per, timezone };
  return given({ more_than: calls, sum: budget && { ...budget, ...group } });
}

function windowIn({ between, days, timezone, sum }: WindowOptions): CreateRule["between"] {
  if (between === undefined) {
    if (days === undefined && (timezone === undefined || sum !== undefined)) return undefined;
    throw new UsageError(days === undefined ? "--timezone is for --between and --sum." : "--days is for --between.");
  }
  const [from = "", to, ...more] = between.split("-").map((time) => time.trim());
  if (to === undefined || more.length > 0) throw new UsageError("--between takes two times, such as 18:00-08:00.");
  if (timezone === undefined) throw new UsageError("--between takes --timezone, such as --timezone Europe/Berlin.");
  // Safe: the service refuses what is no day.
  const named = days?.split(",").map((day) => day.trim().toLowerCase()) as NonNullable<CreateRule["between"]>["days"];
  return { from, to, ...given({ days: named }), timezone };
}

/** What a file changes, by rule names. */
interface Difference {
  readonly added: readonly string[];
  readonly changed: readonly { readonly name: string; readonly members: readonly string[] }[];
  readonly removed: readonly string[];
  readonly reordered: boolean;
}

async function readRules({ io }: Session, file: string): Promise<ReplaceRules> {
  const written = parseObject(await readValue(file === "-" ? file : `@${file}`, io), "The file");
  if (!Array.isArray(written["rules"])) {
    throw new UsageError('The file must be { "rules": [ … ] }, as `outgate rules export` prints it.');
  }
  // Safe: the service refuses what is no rule.
  return written as ReplaceRules;
}

/** The counts, then a line for each request with another result. */
function testText({ looked_at: count, from, differing, differences, ...result }: DryRun): string {
  const { allowed, held, refused, held_approved: approved, held_rejected: rejected, unknown, uncertain } = result;
  if (from === null) return unknown > 0 ? `Rules refused all ${unknown} requests.` : "Nothing was requested yet.";
  const more = differing - differences.length;
  return [
    `Looked at ${count}, the oldest of ${from}: ${allowed} would have been sent, ${held} held and ${refused} refused.`,
    ...(held > 0 ? [`Of those held, people had approved ${approved} and rejected ${rejected}.`] : []),
    ...(uncertain > 0
      ? [`Not certain: ${uncertain} within a budget or count, to which older calls may have added.`]
      : []),
    ...(unknown > 0 ? [`Not known: ${unknown} that a rule refused then.`] : []),
    differing === 0 ? "Nothing differs from the rules in force." : "What differs from the rules in force:",
    ...differences.map(({ id, method, url, in_force: before, tried, rule, reason }) => {
      const why = [rule, reason].filter((text) => text !== null).join(": ");
      return `${id}  ${FATES[tried]}, not ${FATES[before]}  ${visible(`${method} ${url}${why === "" ? "" : `  (${why})`}`)}`;
    }),
    ...(more > 0 ? [`${more} more differ.`] : []),
  ].join("\n");
}

const FATES: Readonly<Record<DryRun["differences"][number]["tried"], string>> = {
  allow: "sent",
  hold: "held",
  refuse: "refused",
};

function compareRules(before: readonly Definition[], after: readonly Definition[]): Difference {
  const old = new Map(before.map((rule) => [rule.name, rule]));
  const names = new Set(after.map(({ name }) => name));
  const kept = after.filter(({ name }) => old.has(name));
  const keptBefore = before.filter(({ name }) => names.has(name));
  return {
    added: after.filter(({ name }) => !old.has(name)).map(({ name }) => name),
    changed: kept.flatMap((rule) => {
      const members = changedMembers(old.get(rule.name) ?? rule, rule);
      return members.length === 0 ? [] : [{ name: rule.name, members }];
    }),
    removed: before.filter(({ name }) => !names.has(name)).map(({ name }) => name),
    reordered: kept.some(({ name }, place) => keptBefore[place]?.name !== name),
  };
}

function changedMembers(before: Definition, after: Definition): readonly string[] {
  const members = new Map(Object.entries(before));
  const later = new Map(Object.entries(after));
  return [...new Set([...members.keys(), ...later.keys()])].filter(
    (member) => canonicalJson(members.get(member)) !== canonicalJson(later.get(member)),
  );
}

/** JSON text with sorted members, which is equal for equal values. */
function canonicalJson(value: unknown): string | undefined {
  return JSON.stringify(value, (_name, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one) && !("rawJSON" in one)
      ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}

function differenceText({ added, changed, removed, reordered }: Difference, isDryRun: boolean): string {
  const lines = [
    ...added.map((name) => `added    ${visible(name)}`),
    ...changed.map(({ name, members }) => `changed  ${visible(name)}: ${visible(members.join(", "))}`),
    ...removed.map((name) => `removed  ${visible(name)}`),
    ...(reordered ? ["The order is another one."] : []),
  ];
  if (lines.length === 0) return "Nothing differs.";
  return [...lines, isDryRun ? "Nothing was changed: --dry-run." : "These rules are in force."].join("\n");
}

function toDefinition(rule: Rule): Definition {
  const {
    id: _id,
    position: _position,
    version: _version,
    created_at: _createdAt,
    created_by: _createdBy,
    changed_at: _changedAt,
    changed_by: _changedBy,
    warnings: _warnings,
    ...definition
  } = rule;
  return definition;
}

/** A rule on one line, with probable mistakes on further lines. */
function ruleText(rule: Rule): string {
  const { name, effect, ...conditions } = toDefinition(rule);
  const parts = Object.entries(conditions).map(([member, value]) => {
    const isPlain = typeof value === "string" || Array.isArray(value);
    return `${member.replaceAll("_", " ")} ${isPlain ? String(value) : canonicalJson(value)}`;
  });
  const warnings = (rule.warnings ?? []).map((text) => `\n   ! ${visible(text)}`);
  return `${rule.position + 1}. ${rule.id}  ${visible(`${name}: ${effect}${parts.length === 0 ? "" : `; ${parts.join("; ")}`}`)}${warnings.join("")}`;
}
