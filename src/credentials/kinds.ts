import type { CredentialKind, CredentialSettings, HmacScheme } from "../core/credential.ts";
import { plainHeaderName } from "../core/method-overrides.ts";
import { normalTarget, type HttpMethod } from "../core/target.ts";

/** A request without the headers of its credential. */
interface Unsigned {
  readonly url: string;
  readonly method: HttpMethod;
  readonly body: string | Uint8Array | null;
}

type Header = readonly [name: string, value: string];

interface Applied {
  readonly headers: readonly Header[];
  /** Values that are as good as the secret, so they are masked in answers, too. */
  readonly secrets: readonly string[];
}

/** How one kind of credential is added to a request. */
interface Kind<Settings> {
  headers(settings: Settings): readonly string[];
  apply(settings: Settings, request: Unsigned, secret: string, now: Date): Applied;
  /** What is wrong with a secret; null: nothing. */
  problem(secret: string): string | null;
}

const AUTHORIZATION = "Authorization";

const KINDS: { readonly [Name in CredentialKind]: Kind<Extract<CredentialSettings, { kind: Name }>> } = {
  bearer: {
    headers: () => [AUTHORIZATION],
    apply: (_settings, _request, secret) => withWhole(AUTHORIZATION, `Bearer ${secret}`),
    problem: (secret) => (/^[\x21-\x7e]+$/.test(secret) ? null : "May hold only printable ASCII without spaces."),
  },
  header: {
    headers: ({ header }) => [header],
    apply: ({ header, scheme }, _request, secret) =>
      withWhole(header, scheme === null ? secret : `${scheme} ${secret}`),
    problem: (secret) =>
      /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(secret)
        ? null
        : "May hold only printable ASCII, without a space at either end.",
  },
  basic: {
    headers: () => [AUTHORIZATION],
    apply({ username }, _request, secret) {
      const pair = Buffer.from(`${username}:${secret}`).toString("base64");
      return { headers: [[AUTHORIZATION, `Basic ${pair}`]], secrets: [`Basic ${pair}`, pair] };
    },
    problem: notPrintable,
  },
  hmac: {
    headers: ({ header, timeHeader }) => (timeHeader === null ? [header] : [header, timeHeader]),
    apply(settings, request, secret, now) {
      const { header, timeHeader, value } = settings;
      const timestamp = writtenTime(settings, now);
      const signature = hmacSignature(settings, request, secret, timestamp);
      const shown = filled(value, { timestamp, signature });
      const headers: readonly Header[] = [
        [header, shown],
        ...(timeHeader === null ? [] : [[timeHeader, timestamp] as const]),
      ];
      return { headers, secrets: [shown, signature] };
    },
    problem: notPrintable,
  },
};

function withWhole(header: string, value: string): Applied {
  return { headers: [[header, value]], secrets: [value] };
}

/** The kind for these settings. */
function kindFor<Settings extends CredentialSettings>({ kind }: Settings): Kind<Settings> {
  // Safe: the table has each kind under the name in its settings.
  return KINDS[kind] as Kind<Settings>;
}

export function headersOfCredential(settings: CredentialSettings): readonly string[] {
  return kindFor(settings).headers(settings);
}

export function applyCredential(settings: CredentialSettings, request: Unsigned, secret: string, now: Date): Applied {
  return kindFor(settings).apply(settings, request, secret, now);
}

export function secretProblem(kind: CredentialKind, secret: string): string | null {
  return KINDS[kind].problem(secret);
}

/** A request header that its credential also sets, in any spelling: to many targets, `x_api_key` is `X-Api-Key`. */
export function clashingHeader(
  settings: CredentialSettings,
  headers: Readonly<Record<string, string>> | null,
): string | null {
  const own = new Set(headersOfCredential(settings).map(plainHeaderName));
  return Object.keys(headers ?? {}).find((name) => own.has(plainHeaderName(name))) ?? null;
}

function notPrintable(secret: string): string | null {
  return /^\P{Cc}+$/u.test(secret) && secret.isWellFormed() ? null : "May hold no control characters.";
}

/** The placeholders that a signed text may contain, and those of the header's value. */
export const SIGNED_PLACES = ["timestamp", "method", "url", "host", "path", "query", "body"] as const;

export const VALUE_PLACES = ["timestamp", "signature"] as const;

const PLACE = /\{([a-z]+)\}/g;

/** The unknown placeholders in a text. */
export function unknownPlaces(text: string, known: readonly string[]): readonly string[] {
  return [...text.matchAll(PLACE)].flatMap(([, name = ""]) => (known.includes(name) ? [] : [name]));
}

/** Fills placeholders in one pass, so that a value that looks like a placeholder stays as it is. */
function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(PLACE, (place, name: string) => values[name] ?? place);
}

function writtenTime({ time }: HmacScheme, now: Date): string {
  if (time === "iso") return now.toISOString();
  return String(time === "seconds" ? Math.floor(now.getTime() / 1_000) : now.getTime());
}

function hmacSignature(
  { algorithm, encoding, signs }: HmacScheme,
  { url, method, body }: Unsigned,
  secret: string,
  timestamp: string,
): string {
  const target = normalTarget(url);
  const path = target?.pathname ?? "";
  const values = {
    timestamp,
    method,
    url: target === null ? url : target.origin + target.rest,
    host: target?.host ?? "",
    path,
    query: target?.rest.slice(path.length + 1) ?? "",
  };
  const hasher = new Bun.CryptoHasher(algorithm, Buffer.from(secret));
  // The body is inserted separately, since it may be bytes that are no text.
  for (const [at, part] of signs.split("{body}").entries()) {
    if (at > 0) hasher.update(body ?? "");
    hasher.update(filled(part, values));
  }
  return hasher.digest().toString(encoding);
}
