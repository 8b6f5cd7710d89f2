import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestAuthority } from "../../test/outbound/certificates.ts";

/** A certificate for a target on this machine, and the authority that signed it, as files. */
export interface TargetTls extends Disposable {
  /** For the target: the certificate and its key. */
  readonly targetEnv: Readonly<Record<string, string>>;
  /** For whatever calls the target: the setting by which an operator makes Bun and Node trust an authority. */
  readonly callerEnv: Readonly<Record<string, string>>;
  readonly caFile: string;
}

/** An elliptic key, as public authorities give them out by default: an RSA key would cost the target more than its callers. */
export function makeTargetTls(addresses: readonly string[] = ["127.0.0.1"]): TargetTls {
  const folder = mkdtempSync(join(tmpdir(), "outgate-bench-tls-"));
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  using authority = new TestAuthority();
  const { key, cert } = authority.issue(["DNS:localhost", ...addresses.map((address) => `IP:${address}`)].join(","));
  const caFile = file("ca.pem", authority.ca);
  return {
    targetEnv: { TLS_KEY: file("target.key", key), TLS_CERT: file("target.pem", cert) },
    callerEnv: { NODE_EXTRA_CA_CERTS: caFile },
    caFile,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
