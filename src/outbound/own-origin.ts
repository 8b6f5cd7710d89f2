import { networkInterfaces } from "node:os";
import { INTERFACES_FRESH_MS } from "../domain/limits.ts";
import { type NormalTarget, normalTarget } from "../domain/normal-target.ts";
import { type Address, hostOf, isLoopback, parseAddress } from "./address.ts";
import { classOfName } from "./host-name.ts";

/** Where this service itself answers. An action to it could make actions without end. */
export interface OwnOrigins {
  /** The hosts of `BASE_URL` and `HOST`, in their normal form. */
  readonly hostnames: ReadonlySet<string>;
  /** Those of them that are addresses: another name may stand for one, also where NAT keeps it off our interfaces. */
  readonly addresses: ReadonlySet<string>;
  /** The port that we listen on, and that of `BASE_URL`. Each counts at each of our hosts. */
  readonly ports: ReadonlySet<number>;
  /** Addresses of this machine's interfaces now: they come and go while the service runs. */
  readonly machineAddresses: () => readonly string[];
}

/** Reads origins such as `http://127.0.0.1:3000`; 0.0.0.0 and [::] stand for this machine. Null when one is none. */
export function parseOwnOrigins(
  origins: readonly string[],
  machineAddresses: () => readonly string[] = createInterfaceAddresses(),
): OwnOrigins | null {
  const targets = origins.map(normalTarget);
  if (!targets.every((target) => target !== null)) return null;
  const literals = targets.map(literalOf).filter((address) => address !== null);
  return {
    hostnames: new Set(targets.map(({ hostname }) => hostname)),
    addresses: new Set(literals.map(hostOf)),
    ports: new Set(targets.flatMap(portsOf)),
    machineAddresses,
  };
}

/**
 * Whether a call would come back to a route of ours that changes something; `address` is what the host stands for, where
 * that is known.
 */
export function isOwnTarget(own: OwnOrigins, target: NormalTarget, address: Address | null): boolean {
  if (!own.ports.has(target.port) || !isOwnPath(target.pathname)) return false;
  if (own.hostnames.has(target.hostname)) return true;
  return address === null ? classOfName(target.hostname) === "loopback" : isOurAddress(own, address);
}

function isOurAddress(own: OwnOrigins, address: Address): boolean {
  if (isThisMachine(address) || own.addresses.has(hostOf(address))) return true;
  return own.machineAddresses().some((text) => isSame(parseAddress(text), address));
}

function isThisMachine(address: Address): boolean {
  return isLoopback(address) || address.every((byte) => byte === 0);
}

function isSame(one: Address | null, other: Address): boolean {
  return one !== null && hostOf(one) === hostOf(other);
}

/** Without a port both schemes lead to us: a plain address is usually redirected to the other. */
function portsOf(target: NormalTarget): readonly number[] {
  const address = literalOf(target);
  const isLocal = address === null ? classOfName(target.hostname) === "loopback" : isThisMachine(address);
  return isLocal || target.host !== target.hostname ? [target.port] : [80, 443];
}

function literalOf({ hostname }: NormalTarget): Address | null {
  return parseAddress(hostname.replace(/^\[(.*)\]$/, "$1"));
}

/** As the system tells them, asked at most once in `INTERFACES_FRESH_MS`: most calls to an API go to a path of /v1. */
function createInterfaceAddresses(): () => readonly string[] {
  let known: readonly string[] = [];
  let askedAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    if (nowMs - askedAtMs >= INTERFACES_FRESH_MS) {
      const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
      // A link-local one is written with its zone by some systems; its address is what counts.
      known = all.map(({ address }) => address.split("%", 1)[0] ?? "");
      askedAtMs = nowMs;
    }
    return known;
  };
}

/** Whether a path leads to what changes state here. Letters in any case and coding, to be on the safe side. */
function isOwnPath(pathname: string): boolean {
  return OWN_PATH.test(pathname.includes("%") ? decoded(pathname) : pathname);
}

/** Broken coding stays as it is: no router of ours would decode it either. */
function decoded(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname;
  }
}

const OWN_PATH = /^\/(v1|auth|mcp|a)(\/|$)/i;
