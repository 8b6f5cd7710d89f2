import type { Issue } from "../core/domain-error.ts";
import { FORM_PAIRS_MAX, REQUEST_BODY_BYTES_MAX } from "../core/limits.ts";
import { elementsIn, membersIn } from "../core/json-walk.ts";
import { encodeForm, type FormPair } from "../core/body.ts";

/** A form as it is sent, or what is wrong with it. */
type ReadFormBody = { readonly encoded: string } | { readonly issues: readonly Issue[] };

/** Reads the JSON text of a `form`, an object without white space. The pairs keep its order. */
export function readFormBody(json: string): ReadFormBody {
  const pairs: FormPair[] = [];
  const issues: Issue[] = [];
  for (const [name, text] of membersIn(json)) {
    const problem = nameProblem(name) ?? addPairs(pairs, name, text);
    if (problem !== null) issues.push({ field: `form.${name.toWellFormed()}`, message: problem });
    if (pairs.length > FORM_PAIRS_MAX) return refused(`Has more than ${FORM_PAIRS_MAX} pairs of a name and a value.`);
  }
  if (issues.length > 0) return { issues };
  const encoded = encodeForm(pairs);
  return encoded.length > REQUEST_BODY_BYTES_MAX
    ? refused(`Is longer than ${REQUEST_BODY_BYTES_MAX} bytes in the encoding of forms.`)
    : { encoded };
}

function nameProblem(name: string): string | null {
  return name.isWellFormed() ? null : NOT_WELL_FORMED;
}

/** Adds the pairs of one name; returns what is wrong with its value. */
function addPairs(pairs: FormPair[], name: string, text: string): string | null {
  const values = text.startsWith("[") ? elementsIn(text) : [text];
  for (const written of values) {
    if (!written.startsWith('"')) return "Must be a string or a list of strings.";
    const value = String(JSON.parse(written));
    if (!value.isWellFormed()) return NOT_WELL_FORMED;
    pairs.push([name, value]);
    if (pairs.length > FORM_PAIRS_MAX) return null;
  }
  return null;
}

const NOT_WELL_FORMED = "Must be well-formed Unicode: forms are sent as UTF-8.";

function refused(message: string): ReadFormBody {
  return { issues: [{ field: "form", message }] };
}
