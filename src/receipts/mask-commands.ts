import { EditedText, type Masking, maybeSensitive, secretKind } from "./mask-rules.ts";

/** Masks passwords in `.netrc` files and in curl commands. */
export function maskPasswords(text: string, masking: Masking): string {
  const netrc = text.includes("password") ? maskEnds(text, NETRC, masking) : text;
  return netrc.includes("curl") ? maskEnds(netrc, CURL, masking, CURL_QUOTES) : netrc;
}

/** `machine … login … password …` of `.netrc`. */
const NETRC =
  /\b(?:machine|login|account)[ \t\r\n]{1,8}[^\s"']{1,256}[ \t\r\n]{1,8}password[ \t\r\n]{1,8}([^\s"']{1,1024})/g;

/**
 * The login of curl (`-u`, `--user`, `--proxy-user`), quoted as a whole or in parts. If the text was cut, the last quote is
 * missing; in a JSON string that is read without decoding, quotes are escaped.
 */
const CURL =
  /[ \t](?:-[uU]|--(?:proxy-)?user)[ \t=]{0,8}(?:'[^'\n:]{1,256}:([^'\n]{1,1024})|"[^"\n:]{1,256}:((?:[^"\\\n]|\\.){1,1024})|\\"[^"\\\n:]{1,256}:([^"\\\n]{1,1024})|["']?[^\s"':]{1,256}["']?:(?:\$?'([^'\n]{1,1024})|"((?:[^"\\\n]|\\.){1,1024})|\\"([^"\\\n]{1,1024})|([^\s"']{1,1024})))/g;

/** What closes the quote around each group of `CURL`. */
const CURL_QUOTES = ["'", '"', '\\"', "'", '"', '\\"', ""];

/**
 * What a shell joins to the part before it: another part, quoted or bare. A quote before a blank or a sign closes what is
 * around the command.
 */
const JOINED =
  /'(?=[^\s"'`|&;<>(),.:}\]\\])[^'\n]{1,1024}|"(?=[^\s"'`|&;<>(),.:}\]\\])(?:[^"\\\n]|\\.){1,1024}|[^\s"'`|&;<>(),.:}\]\\][^\s"'`|&;<>(),}\]]{0,1023}/y;

/** Masks the password at the end of each match. `quotes`: what closes each group; left out: no part is joined to it. */
function maskEnds(text: string, pattern: RegExp, masking: Masking, quotes?: readonly string[]): string {
  const masked = new EditedText(text);
  let done = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index < done) continue;
    const group = match.slice(1).findIndex((one) => one !== undefined);
    const first = match[group + 1] ?? "";
    done = match.index + match[0].length;
    const parts = [{ at: done - first.length, part: first }];
    const quote = quotes?.[group] ?? null;
    JOINED.lastIndex = done + (quote?.length ?? 0);
    const mayGoOn = quote !== null && text.startsWith(quote, done);
    for (let next = mayGoOn ? JOINED.exec(text) : null; next !== null; next = JOINED.exec(text)) {
      const [found] = next;
      const isQuoted = found.startsWith('"') || found.startsWith("'");
      done = next.index + found.length;
      parts.push({ at: next.index + (isQuoted ? 1 : 0), part: isQuoted ? found.slice(1) : found });
      JOINED.lastIndex = isQuoted ? done + 1 : done;
    }
    const isHidden = masking.hidesNamed(parts.map(({ part }) => part).join(""));
    for (const { at, part } of parts) {
      const shown = isHidden && parts.length > 1 ? masking.hide(part, "password") : masking.hideIn(part, "password");
      if (shown !== part) masked.replace(at, at + part.length, shown);
    }
  }
  return masked.toString();
}

/** Masks command options with the name of a secret, such as `--token …`, and passwords in SQL. */
export function maskCommand(text: string, masking: Masking): string {
  const hasOption = (text.includes(" -") || text.startsWith("-")) && maybeSensitive(text);
  if (!hasOption && !(text.includes("'") && /password|secret|identified/i.test(text))) return text;
  return [OPTION, SQL_PASSWORD].reduce((left, pattern) => {
    const masked = new EditedText(left);
    for (const match of left.matchAll(pattern)) {
      const [whole, name = "", ...values] = match;
      const value = values.find((one) => one !== undefined) ?? "";
      const kind = pattern === OPTION ? secretKind(name) : "password";
      const shown = kind === null ? value : masking.hideIn(value, kind);
      const end = match.index + whole.length;
      if (shown !== value) masked.replace(end - value.length, end, shown);
    }
    return masked.toString();
  }, text);
}

/** An option with a blank after its name, and a value that is no option itself. */
const OPTION =
  /(?<![\w-])--?([A-Za-z][\w-]{1,63})[ \t]{1,8}(?:'([^'\n]{1,1024})|"((?:[^"\\\n]|\\.){1,1024})|([^\s"'-][^\s"']{0,1023}))/g;

/** `IDENTIFIED BY '…'`, `WITH PASSWORD '…'`, `SET PASSWORD FOR 'ann' = '…'`, `PASSWORD('…')`. */
const SQL_PASSWORD =
  /\b(password|secret|identified[ \t]by)(?:[ \t]for[ \t][^\s=]{1,128})?(?:[ \t]{1,4}[=(]?|[=(])[ \t]{0,4}'((?:[^'\\\n]|\\.){1,1024})/gi;
