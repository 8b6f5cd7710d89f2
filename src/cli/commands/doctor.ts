import { OutgateError } from "../../client/transport.ts";
import { takeApiKey, openSession, readUrl, type Session } from "../session.ts";
import { readArguments, type Command, EXIT, type Io } from "../command.ts";
import { explain, type Cell, seen, table } from "../output.ts";
import { VERSION } from "../../config/config.ts";

/** What the settings of this machine would make of a service that starts here. */
export interface LocalSettings {
  readonly given: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
  readonly problems: readonly string[];
}

/** One thing that was looked at. */
interface Finding {
  readonly what: string;
  readonly state: "ok" | "note" | "wrong";
  readonly found: string;
}

const OPTIONS = { json: { type: "boolean" } } as const;

/** `outgate doctor`: what is set, whether the service can be reached, and what to do about what is wrong. */
export function doctorCommand(readLocal: (env: Io["env"]) => LocalSettings): Command {
  return {
    usage: "doctor [--json]",
    details: "  --json  JSON also on a terminal\n\n  Exit code: 0 nothing is wrong, 1 something is.",
    async run(given, io) {
      const { key, args } = await takeApiKey(given, io);
      const { values } = readArguments(args, OPTIONS);
      const session = openSession(io, key);
      const findings = [...client(io, key), ...(await service(session, key)), ...local(readLocal(io.env))];
      const isWrong = findings.some(({ state }) => state === "wrong");
      if (values.json === true) session.json({ ok: !isWrong, findings });
      else session.say(table(findings.map(rowOf), session.paint, io.columns));
      return isWrong ? EXIT.failed : EXIT.ok;
    },
  };
}

const MARKS = {
  ok: { text: "ok", color: "green" },
  note: { text: "note", color: "yellow" },
  wrong: { text: "WRONG", color: "red" },
} as const;

function rowOf({ what, state, found }: Finding): readonly Cell[] {
  return [MARKS[state], what, seen(found)];
}

/** What the commands of this machine work with. */
function client(io: Io, key: string | null): readonly Finding[] {
  const isSet = Boolean(io.env["OUTGATE_URL"]);
  const advice =
    "is not set. Set it to an API key, or OUTGATE_API_KEY_FILE to a file; the first start of Outgate prints one.";
  return [
    { what: "OUTGATE_URL", state: "ok", found: `${readUrl(io)}${isSet ? "" : " (unless it is set)"}` },
    key === null
      ? { what: "OUTGATE_API_KEY", state: "wrong", found: advice }
      : { what: "OUTGATE_API_KEY", state: "ok", found: `••••${key.length < 16 ? "" : key.slice(-4)}` },
  ];
}

async function service(session: Session, key: string | null): Promise<readonly Finding[]> {
  const beganMs = performance.now();
  const health = await session.client.getHealth().catch((error: unknown) => wrong("service", error, session));
  if ("what" in health) return [health];
  const tookMs = Math.round(performance.now() - beganMs);
  const isSame = health.version === VERSION;
  const versions = isSame ? "" : `; this command is ${VERSION}: use the same version of both`;
  const reached: Finding = {
    what: "service",
    state: isSame ? "ok" : "note",
    found: `Outgate ${health.version} answers in ${tookMs} ms${versions}`,
  };
  return [reached, await readiness(session), ...(key === null ? [] : await account(session))];
}

async function readiness(session: Session): Promise<Finding> {
  try {
    await session.client.getReady();
    return { what: "readiness", state: "ok", found: "it can store what it is given" };
  } catch (error) {
    if (!(error instanceof OutgateError) || error.status !== 503) return wrong("readiness", error, session);
    const found = "it can't store just now, or is stopping. Look at its log: the disk may be full, the database away.";
    return { what: "readiness", state: "wrong", found };
  }
}

async function account(session: Session): Promise<readonly Finding[]> {
  try {
    const { id, key, limits } = await session.client.getAccount();
    const rate = limits.requests_per_second === null ? "any number of" : limits.requests_per_second;
    return [
      { what: "account", state: "ok", found: `${id}; ${rate} requests a second` },
      { what: "key", state: "ok", found: `${JSON.stringify(key.name)}, ${key.role}` },
    ];
  } catch (error) {
    return [wrong("key", error, session)];
  }
}

function wrong(what: string, error: unknown, { url }: Session): Finding {
  const told = explain(error, url);
  if (told === null) throw error;
  return { what, state: "wrong", found: told.message };
}

/** For whoever starts the service on this machine: its settings, of which the commands above know nothing. */
function local({ given, notes, problems }: LocalSettings): readonly Finding[] {
  const settings = Object.entries(given).map(([name, text]): Finding => ({ what: name, state: "ok", found: text }));
  const rest =
    settings.length === 0 ? "a service started here runs on the defaults" : "the others are at their defaults";
  return [
    ...settings,
    { what: "settings", state: problems.length === 0 ? "ok" : "wrong", found: [...problems, rest].join(" ") },
    ...notes.map((found): Finding => ({ what: "settings", state: "note", found })),
  ];
}
