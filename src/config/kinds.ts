import Type, { type TSchema } from "typebox";

/** The words about a setting, for errors and for `.env.example`. */
export interface Words {
  /** One sentence: what it is, and what it means to leave it unset. */
  readonly description: string;
  /** What may stand there; follows "Allowed:". */
  readonly allowed: string;
}

/** The words of a setting. */
export function wordsOf(schema: TSchema): Words {
  const words: Readonly<Record<string, unknown>> = { ...schema };
  return { description: String(words["description"]), allowed: String(words["allowed"]) };
}

/** What is wrong with a text, to follow the setting's name ("is not …"); null when nothing is. */
export type FaultOf = (value: string) => string | null;

/** A whole number in plain decimal digits. */
export function whole(minimum: number, maximum: number, rest: { description: string; default?: number }) {
  return Type.Integer({ minimum, maximum, allowed: `a whole number from ${minimum} to ${maximum}`, ...rest });
}

/** One of some words. */
export function word<Values extends string[]>(
  values: readonly [...Values],
  rest: { description: string; default?: Values[number] },
) {
  return Type.Enum(values, { allowed: values.join(", "), ...rest });
}

/** A text that has to be of a form. */
export function textSetting(faultOf: FaultOf, rest: Words & { default?: string }) {
  return Type.Refine(
    Type.String({ ...rest }),
    (value) => faultOf(value) === null,
    (value) => faultOf(value) ?? "",
  );
}

/** Texts of a form, separated by commas; empty when unset. */
export function list(form: RegExp | FaultOf, rest: Words) {
  const faultOf = form instanceof RegExp ? matching(form, "has an entry that is none") : form;
  return Type.Array(textSetting(faultOf, rest), { default: [], ...rest });
}

/** The fault of a text that does not match. */
export function matching(pattern: RegExp, fault = "has the wrong form"): FaultOf {
  return (value) => (pattern.test(value) ? null : fault);
}
