import { EXIT, type Io } from "../io.ts";
import { deletableText, shrinkAdvice } from "../../accounts/server-size.ts";
import { formatSize } from "../../core/action.ts";
import { examineDatabase, reportSettings } from "../../admin/examine.ts";
import { OutgateError } from "../../client/transport.ts";
import { VERSION } from "../../config/config.ts";
import { systemClock } from "../../core/clock.ts";
import { explain } from "../failures.ts";
import { type Cell, textTable } from "../table.ts";
import {
  type ServiceAccess,
  openSession,
  ownPort,
  readCredentials,
  type Session,
  type SessionOptions,
} from "../session.ts";

interface Finding {
  readonly what: string;
  readonly state: "ok" | "note" | "wrong";
  readonly found: string;
}

/** `outgate doctor`: checks settings and service, and says how to fix problems. */
export async function diagnose(io: Io, { api_key_file: keyFile, json }: SessionOptions): Promise<number> {
  const credentials = await readCredentials(keyFile, io);
  const { key } = credentials;
  const session = openSession(io, credentials);
  const findings = [
    ...client(io, credentials),
    ...(await service(session, key)),
    ...local(reportSettings(io.env)),
    ...(await database(io)),
  ];
  const isWrong = findings.some(({ state }) => state === "wrong");
  // People read it in a pipe too.
  if (json === true) session.json({ ok: !isWrong, findings });
  // Never cut: the advice is at the end.
  else session.say(textTable(findings.map(findingRow), session.paint));
  return isWrong ? EXIT.failed : EXIT.ok;
}

const MARKS = {
  ok: { text: "ok", color: "green" },
  note: { text: "note", color: "yellow" },
  wrong: { text: "WRONG", color: "red" },
} as const;

function findingRow({ what, state, found }: Finding): readonly Cell[] {
  return [MARKS[state], what, found];
}

/** Checks the settings of the commands. */
function client(io: Io, { url, key, source }: ServiceAccess): readonly Finding[] {
  const fallback = ownPort(io.env) === null ? " (default)" : " (by PORT)";
  const advice =
    "is not set. Run `outgate login`, or set it to an API key, or OUTGATE_API_KEY_FILE to a file; the first start of Outgate prints one.";
  if (source === "login") {
    return [{ what: "login", state: "ok", found: `${url}, ••••${(key ?? "").slice(-4)}; from \`outgate login\`` }];
  }
  return [
    { what: "OUTGATE_URL", state: "ok", found: `${url}${io.env["OUTGATE_URL"] ? "" : fallback}` },
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
    return { what: "readiness", state: "ok", found: "the service can store actions" };
  } catch (error) {
    if (!(error instanceof OutgateError) || error.status !== 503) return wrong("readiness", error, session);
    const found =
      "the service can't store actions at the moment, or is stopping. Check its log: the disk may be full, or the database down.";
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
  return { what, state: "wrong", found: explain(error, url).message };
}

/** Checks the settings of a service that starts on this machine. The checks above don't use them. */
function local({ given, notes, problems }: ReturnType<typeof reportSettings>): readonly Finding[] {
  const settings = Object.entries(given).map(([name, text]): Finding => ({ what: name, state: "ok", found: text }));
  const rest = settings.length === 0 ? "a service started here uses the defaults" : "the others have their defaults";
  return [
    ...settings,
    { what: "settings", state: problems.length === 0 ? "ok" : "wrong", found: [...problems, rest].join(" ") },
    ...notes.map((found): Finding => ({ what: "settings", state: "note", found })),
  ];
}

/** Checks the database of a service started here, unless the service would create a new file. */
async function database({ env }: Io): Promise<readonly Finding[]> {
  try {
    const examined = await examineDatabase(env, systemClock.now());
    if (examined === null) return [];
    const { size, key } = examined;
    return [...(size === null ? [REACHED] : fileFindings(size)), keyFinding(key)];
  } catch (error) {
    return [{ what: "database", state: "wrong", found: error instanceof Error ? error.message : String(error) }];
  }
}

const REACHED: Finding = { what: "database", state: "ok", found: "it can be reached, and is of this version" };

type Examined = NonNullable<Awaited<ReturnType<typeof examineDatabase>>>;

function fileFindings(size: NonNullable<Examined["size"]>): readonly Finding[] {
  const { path, bytes, freeBytes } = size;
  const free = freeBytes === 0 ? "" : `, of which ${formatSize(freeBytes)} are free for the next rows`;
  const found = `${path} has ${formatSize(bytes)}${free}. Retention would free: ${deletableText(size)}`;
  const advice = shrinkAdvice(size);
  return [
    { what: "database", state: "ok", found },
    ...(advice === null ? [] : [{ what: "database", state: "note" as const, found: advice }]),
  ];
}

function keyFinding({ problem, warning }: Examined["key"]): Finding {
  const what = "master key";
  if (problem !== null) return { what, state: "wrong", found: problem };
  if (warning !== null) return { what, state: "note", found: warning };
  return { what, state: "ok", found: "it is that of the database" };
}
