import { KEY_HEADER } from "../../accounts/first-action.ts";
import { type ApiEntry, exampleOf, type ApiReference } from "./api-document.ts";

/** Example requests by language, named as after the fence of a code block. */
export function requestExamples(entry: ApiEntry, reference: ApiReference) {
  const request = requestOf(entry, reference);
  return [
    { label: "curl", language: "sh", text: curlOf(request) },
    { label: "TypeScript", language: "ts", text: typescriptOf(request) },
    { label: "Python", language: "python", text: pythonOf(request) },
  ];
}

type ExampleRequest = ReturnType<typeof requestOf>;

/** A request that works once its values are replaced. */
function requestOf(entry: ApiEntry, reference: ApiReference) {
  const { method, path, parameters, permission, successes } = entry;
  const needed = parameters.flatMap(({ name, in: place, required, schema }) =>
    required ? [{ name, place, value: String(exampleOf(schema, reference.schemas)) }] : [],
  );
  const query = needed
    .filter(({ place }) => place === "query")
    .map(({ name, value }) => `${name}=${encodeURIComponent(value)}`);
  const filled = needed.reduce((text, { name, value }) => text.replace(`{${name}}`, () => value), path);
  const content = successes[0]?.content ?? [];
  const [first, ...others] = content;
  return {
    method,
    url: `${reference.baseUrl}${filled}${query.length === 0 ? "" : `?${query.join("&")}`}`,
    needsKey: permission !== null,
    /** Undefined for no body. */
    data: bodyExample(entry, reference),
    /** Null if the operation has only one media type. */
    accept: first === undefined || others.length === 0 ? null : first.mediaType,
    answers: answersOf(first?.mediaType),
  };
}

function answersOf(mediaType: string | undefined): "json" | "text" | "nothing" {
  if (mediaType === undefined) return "nothing";
  return mediaType === "application/json" ? "json" : "text";
}

/** Example bodies that show more than the required members. */
const BODIES: Readonly<Record<string, unknown>> = {
  createAction: {
    url: "https://api.example.com/refunds",
    body: { charge: "ch_42", amount: 1200 },
    title: "Refund 12.00 EUR to customer 4711",
    approve: true,
  },
  startBulk: { operation: "retry", filter: { status: ["failed"], host: "api.example.com" }, dry_run: true },
};

/** The example's body; undefined for none. If a body requires nothing, shows its first member. */
export function bodyExample({ operationId: id, body }: ApiEntry, reference: ApiReference): unknown {
  if (body === null) return undefined;
  const written = BODIES[id];
  if (written !== undefined) return written;
  const { properties = {}, required = [] } = body.schema;
  if (required.length > 0) return exampleOf(body.schema, reference.schemas);
  const [first] = Object.entries(properties);
  return first === undefined ? {} : { [first[0]]: exampleOf(first[1], reference.schemas) };
}

function curlOf({ method, url, needsKey, data, accept }: ExampleRequest): string {
  const isImplied = method === "GET" || (method === "POST" && data !== undefined);
  return [
    `curl -s ${isImplied ? "" : `-X ${method} `}'${url}'`,
    ...(needsKey ? [KEY_HEADER] : []),
    ...(accept === null ? [] : [`-H 'Accept: ${accept}'`]),
    // A quote in the example would end the shell's quotes.
    ...(data === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d '${indented(data).replaceAll("'", String.raw`'\''`)}'`]),
  ].join(" \\\n  ");
}

function typescriptOf({ method, url, needsKey, data, accept, answers }: ExampleRequest): string {
  const headers = [
    ...(needsKey ? ["authorization: `Bearer ${process.env.OUTGATE_API_KEY}`"] : []),
    ...(accept === null ? [] : [`accept: ${JSON.stringify(accept)}`]),
    ...(data === undefined ? [] : [`"content-type": "application/json"`]),
  ];
  const members = [
    ...(method === "GET" ? [] : [`method: "${method}"`]),
    ...(headers.length === 0 ? [] : [`headers: {\n    ${headers.join(",\n    ")},\n  }`]),
    ...(data === undefined ? [] : [`body: JSON.stringify(${indented(data).replaceAll("\n", "\n  ")})`]),
  ];
  const options = members.length === 0 ? "" : `, {\n  ${members.join(",\n  ")},\n}`;
  const shown = { json: "await response.json()", text: "await response.text()", nothing: "response.status" };
  return `const response = await fetch("${url}"${options});\nconsole.log(${shown[answers]});`;
}

function pythonOf({ method, url, needsKey, data, accept, answers }: ExampleRequest): string {
  const headers = [
    ...(needsKey ? [`"Authorization": "Bearer " + os.environ["OUTGATE_API_KEY"]`] : []),
    ...(accept === null ? [] : [`"Accept": ${JSON.stringify(accept)}`]),
    ...(data === undefined ? [] : [`"Content-Type": "application/json"`]),
  ];
  const lines = [
    `"${url}"`,
    ...(method === "GET" ? [] : [`method="${method}"`]),
    ...(headers.length === 0 ? [] : [`headers={\n        ${headers.join(",\n        ")},\n    }`]),
    ...(data === undefined ? [] : [`data=json.dumps(${literal(data, "    ")}).encode()`]),
  ];
  const modules = [
    ...(data !== undefined || answers === "json" ? ["json"] : []),
    ...(needsKey ? ["os"] : []),
    "urllib.request",
  ];
  const shown = { json: "json.load(response)", text: "response.read().decode()", nothing: "response.status" };
  return `import ${modules.join(", ")}

request = urllib.request.Request(
    ${lines.join(",\n    ")},
)
with urllib.request.urlopen(request) as response:
    print(${shown[answers]})`;
}

function indented(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** A JSON value as Python code. */
function literal(value: unknown, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const members = Array.isArray(value)
    ? value.map((one) => literal(one, inner))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one, inner)}`);
  if (members.length === 0) return open + close;
  return `${open}\n${members.map((member) => `${inner}${member},\n`).join("")}${indent}${close}`;
}
