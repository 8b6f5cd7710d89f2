import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** Makes keys and certificates for tests with the `openssl` command; nothing of them outlives the test. */
export class TestAuthority implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "outgate-certificates-"));
  #count = 0;

  constructor() {
    this.#openssl([
      "req",
      "-x509",
      ...NEW_KEY,
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
      "-days",
      "2",
      "-subj",
      "/CN=Test authority",
    ]);
  }

  /** The certificate of the authority itself, PEM. */
  get ca(): string {
    return this.#read("ca.pem");
  }

  /** A certificate for these names (`DNS:a.example,IP:127.0.0.1`). */
  issue(names: string): Certificate {
    const name = this.#request(names);
    this.#sign(name, ["-days", "2"]);
    return this.#pair(name);
  }

  /** One whose time is over. */
  issueExpired(names: string): Certificate {
    const name = this.#request(names);
    // Older versions of openssl know only the second way.
    const dated = this.#trySign(name, ["-not_before", "20200101000000Z", "-not_after", "20200102000000Z"]);
    if (!dated) this.#sign(name, ["-days", "-1"]);
    return this.#pair(name);
  }

  /** One that nobody but itself vouches for. */
  selfSigned(names: string): Certificate {
    const name = this.#next();
    const subject = ["-subj", "/CN=self", "-addext", `subjectAltName=${names}`];
    this.#openssl([
      "req",
      "-x509",
      ...NEW_KEY,
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.pem`,
      "-days",
      "2",
      ...subject,
    ]);
    return this.#pair(name);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }

  #request(names: string): string {
    const name = this.#next();
    this.#openssl(["req", ...NEW_KEY, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", `/CN=${name}`]);
    writeFileSync(join(this.#folder, `${name}.ext`), `subjectAltName=${names}\n`);
    return name;
  }

  #sign(name: string, dates: readonly string[]): void {
    if (!this.#trySign(name, dates)) throw new Error(`openssl did not sign ${name}.`);
  }

  #trySign(name: string, dates: readonly string[]): boolean {
    const files = ["-in", `${name}.csr`, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", `${name}.pem`];
    return this.#run(["x509", "-req", ...files, "-extfile", `${name}.ext`, ...dates]);
  }

  #openssl(args: readonly string[]): void {
    if (!this.#run(args)) throw new Error(`openssl ${args[0]} failed.`);
  }

  #run(args: readonly string[]): boolean {
    return Bun.spawnSync(["openssl", ...args], { cwd: this.#folder, stderr: "ignore" }).exitCode === 0;
  }

  #next(): string {
    this.#count += 1;
    return `test-${this.#count}`;
  }

  #pair(name: string): Certificate {
    return { key: this.#read(`${name}.key`), cert: this.#read(`${name}.pem`) };
  }

  #read(file: string): string {
    return readFileSync(join(this.#folder, file), "utf8");
  }
}

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
