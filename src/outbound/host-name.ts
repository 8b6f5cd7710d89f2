const LABEL_CHARS_MAX = 63;
const NAME_CHARS_MAX = 253;
const LABEL = new RegExp(`^[a-z0-9_-]{1,${LABEL_CHARS_MAX}}$`);

/** What a name alone tells, before anybody resolves it (hostile 3). */
export type NameClass = "never" | "loopback" | "private" | "public";

/** `loopback` names are answered here and never asked of DNS (RFC 6761, 6.3). */
export function classOfName(name: string): NameClass {
  if (NEVER.has(name) || name.endsWith(".onion")) return "never";
  if (name === "localhost" || name.endsWith(".localhost")) return "loopback";
  const isPrivate = !name.includes(".") || PRIVATE_ENDINGS.some((ending) => name.endsWith(ending));
  return isPrivate ? "private" : "public";
}

/** Whether a name, in its ASCII form without a trailing dot, is one that a host can have (RFC 1035, 2.3.4). */
export function isHostName(name: string): boolean {
  return name.length <= NAME_CHARS_MAX && name.split(".").every((label) => LABEL.test(label));
}

const NEVER = new Set(["metadata.google.internal"]);
const PRIVATE_ENDINGS = [".internal", ".local", ".home.arpa"];
