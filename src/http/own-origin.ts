import { DomainError } from "../domain/errors.ts";

/** Where people reach the service. */
export interface OwnAddress {
  readonly baseUrl: string;
  /** By other names of this machine too, when nobody else can come in. */
  readonly isOnLoopback: boolean;
  readonly port: number;
}

/** Tells our own pages from others by what a browser says of a request (hostile 7 "CSRF"). */
export interface OwnOrigin {
  /** Lets pass what one of our pages has sent. Throws `forbidden` for everything else, programs included. */
  require(headers: Headers): void;
  /**
   * Throws `forbidden` where either header speaks of another site. For a page that sends no referrer, whose forms have
   * the origin `null` (hostile 7, "Approval page").
   */
  refuseForeignOrNull(headers: Headers): void;
  /** Throws `forbidden` for what another site's page has sent; programs send neither header. */
  refuseForeign(headers: Headers): void;
}

export function createOwnOrigin({ baseUrl, isOnLoopback, port }: OwnAddress): OwnOrigin {
  const names = isOnLoopback ? ["127.0.0.1", "[::1]", "localhost"].map((name) => `http://${name}:${port}`) : [];
  // As `URL` spells them: the port of the scheme is left out, and so do browsers.
  const own = new Set([baseUrl, ...names].map((url) => new URL(url).origin));
  const isOwn = (headers: Headers): boolean | null => {
    const origin = headers.get("origin");
    if (origin !== null) return own.has(origin);
    const site = headers.get("sec-fetch-site");
    // "none": the person typed the address or opened a bookmark, which sends no form.
    return site === null ? null : site === "same-origin";
  };
  const refuse = () => {
    throw new DomainError(
      "forbidden",
      `Forms and log-outs are taken from our own pages only, at ${baseUrl} (the setting BASE_URL says where they are); programs send JSON, and drop their cookie.`,
    );
  };
  return {
    require: (headers) => (isOwn(headers) === true ? undefined : refuse()),
    refuseForeignOrNull(headers) {
      const origin = headers.get("origin");
      const isForeign = origin !== null && origin !== "null" && !own.has(origin);
      if (isForeign || (headers.get("sec-fetch-site") ?? "same-origin") !== "same-origin") refuse();
    },
    refuseForeign: (headers) => (isOwn(headers) === false ? refuse() : undefined),
  };
}
