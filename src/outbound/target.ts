import { URL_CHARS_MAX } from "../config/limits.ts";
import { type NormalTarget, normalTarget, isHostName } from "./normal-target.ts";
import { type Address, parseAddress } from "./addresses.ts";
import { isOwnTarget, checkAddress, checkName, type TargetPolicy } from "./policy.ts";

/** A parsed URL: its text is not used again. */
export interface ParsedTarget extends NormalTarget {
  /** The host as an address, if it is one. */
  readonly literal: Address | null;
}

/**
 * Checks URLs when an action is created, from the text alone. The sentences have no subject: the field's name precedes
 * them.
 */
export function createTargets(policy: TargetPolicy): Targets {
  return {
    checkTarget(url) {
      const target = parseTarget(url);
      if ("refused" in target) return target;
      const refused = refusal(policy, target);
      return refused === null ? { hostname: target.hostname, host: target.host } : { refused };
    },
  };
}

/** Checks how a URL is written, not where it leads. */
export function parseTarget(raw: string): ParsedTarget | RefusedTarget {
  const refused = textProblem(raw);
  if (refused !== null) return { refused };
  const target = normalTarget(raw);
  if (target === null) return { refused: "Is not a URL: its host or port can't be read." };
  const literal = parseAddress(target.hostname.replace(/^\[(.*)\]$/, "$1"));
  const problem = partsProblem(target, literal);
  return problem === null ? { ...target, literal } : { refused: problem };
}

/** The URL parser silently fixes tabs, backslashes and missing slashes. What it would fix is refused. */
function textProblem(raw: string): string | null {
  if (raw.length > URL_CHARS_MAX) return `Is longer than ${URL_CHARS_MAX} characters.`;
  const scheme = SCHEME.exec(raw);
  if (scheme === null) return "Must begin with http:// or https://.";
  if (BLANK.test(raw)) return "May not hold white space or control characters: write them percent-encoded.";
  if (raw.includes("\\")) return "May not hold a backslash: write it as %5C.";
  if (!raw.isWellFormed()) return "Is not well-formed Unicode.";
  const authority = AUTHORITY.exec(raw.slice(scheme[0].length))?.[0] ?? "";
  if (authority === "") return "Has no host.";
  if (authority.includes("@")) return "May not hold a user name or password: use the authorization header.";
  return null;
}

function partsProblem({ hostname, port, pathname }: NormalTarget, literal: Address | null): string | null {
  if (literal === null && !isHostName(hostname))
    return "Has no valid host: labels of 1 to 63 letters, digits or hyphens, 253 in all.";
  if (port === 0) return "Has port 0, which nothing can listen on.";
  if (CLOSED_PORTS.has(port)) return `Has port ${port}, which does not speak HTTP and is not allowed.`;
  // Bun would send `//a` as `/a`: another path than the one that was shown and approved.
  if (pathname.startsWith("//")) return "May not have a path that begins with //.";
  return null;
}

function refusal(policy: TargetPolicy, target: ParsedTarget): string | null {
  const { hostname, literal } = target;
  if (isOwnTarget(policy.own, target, literal)) {
    return "Leads back to this service: no call may go to its own /v1, /auth, /mcp or /a.";
  }
  const verdict = literal === null ? checkName(policy, hostname) : checkAddress(policy, literal, null);
  if (verdict === "allowed") return null;
  return (literal === null ? NAME_REFUSED : ADDRESS_REFUSED)[verdict];
}

const ADDRESS_REFUSED = {
  never:
    "Points to an address that is never allowed (link-local, metadata, multicast or reserved); no setting opens it.",
  private: "Points to a private address; only those listed in ALLOWED_PRIVATE_TARGETS are allowed.",
} as const;

const NAME_REFUSED = {
  never: "Has a host name that is never allowed (metadata or .onion); no setting opens it.",
  private: "Has a private host name; only those listed in ALLOWED_PRIVATE_TARGETS are allowed.",
} as const;

const SCHEME = /^https?:\/\//i;

const AUTHORITY = /^[^/?#]*/;

const BLANK = /[\s\p{Cc}]/u;

/** Remote shells, mail, databases and caches could read a request as commands. */
const CLOSED_PORTS = new Set([22, 23, 25, 110, 143, 465, 587, 993, 995, 3306, 5432, 6379, 11211, 27017]);

/** What a caller needs of a checked URL. */
export interface Target {
  /** ASCII, lower case, no trailing dot, IPv6 in brackets: as `Action.hostname`. */
  readonly hostname: string;
  /** Host name, with the port unless it is the scheme's default. */
  readonly host: string;
}

/** Why no call may go there: a sentence that says what is wrong and which setting, if any, allows it. */
interface RefusedTarget {
  readonly refused: string;
}

/** Checks where calls may go from the text alone; addresses are checked at each attempt. */
export interface Targets {
  checkTarget(url: string): Target | RefusedTarget;
}
