import type { Caller } from "../src/core/roles.ts";
import { NODE_SESSION_MS_MAX } from "../src/core/limits.ts";
import type { AgentDeps, SessionState } from "./call.ts";

export interface SessionIdDeps extends Pick<AgentDeps, "clock" | "ids"> {
  readonly secrets: Pick<AgentDeps["secrets"], "sessionToken" | "isSessionToken">;
}

/** A random part, the end in milliseconds, whether the client can ask its person, and a MAC over these and the key. */
const SESSION_ID = /^([0-9a-f]{32})\.(\d{1,15})\.([an])\.([\w-]{43})$/;

/** The id of a session that any node with the master key knows. It is valid for its key only, for `NODE_SESSION_MS_MAX`. */
export function newSessionId(caller: Caller, canAsk: boolean, { clock, ids, secrets }: SessionIdDeps): string {
  const random = Buffer.from(ids.bytes(16)).toString("hex");
  const said = `${random}.${clock.now().getTime() + NODE_SESSION_MS_MAX}.${canAsk ? "a" : "n"}`;
  return `${said}.${secrets.sessionToken(macInput(said, caller))}`;
}

/** The session of an id; null: it was altered, has expired, or is another key's. */
export function sessionOfId(id: string, caller: Caller, { clock, secrets }: SessionIdDeps): SessionState | null {
  const [, random = "", ends = "", initial = "", mac = ""] = SESSION_ID.exec(id) ?? [];
  const isOurs = secrets.isSessionToken(macInput(`${random}.${ends}.${initial}`, caller), mac);
  if (!isOurs || clock.now().getTime() >= Number(ends)) return null;
  return { caller, canAsk: initial === "a", isHere: false };
}

function macInput(said: string, { accountId, keyId }: Caller): string {
  return JSON.stringify([said, accountId, keyId]);
}
