import type { Static, TObject } from "typebox";
import type { Issue } from "../domain/errors.ts";
import { type Check, compile, onePerField } from "./check.ts";

/** The parameters of a route, compiled. What arrives is text: `kindOf` says what a parameter has to be made into. */
export interface QueryCheck<T> extends Check<T> {
  kindOf(name: string): "integer" | "array" | "text";
}

export function compileQuery<S extends TObject>(schema: S): QueryCheck<Static<S>> {
  const check = compile(schema);
  const kinds = new Map(Object.entries(schema.properties).map(([name, property]) => [name, kindOf(property)]));
  return {
    accepts: (value): value is Static<S> => check.accepts(value),
    issues: (value) => onePerField(check.issues(value).map(byParameter)),
    kindOf: (name) => kinds.get(name) ?? "text",
  };
}

function kindOf(property: object): "integer" | "array" | "text" {
  const type = "type" in property ? property.type : null;
  return type === "integer" || type === "array" ? type : "text";
}

/** An element of a repeated parameter goes by the parameter's name. */
function byParameter({ field, message }: Issue): Issue {
  return { field: field.replace(/\.\d+$/, ""), message };
}
