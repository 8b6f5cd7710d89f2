/** @jsxImportSource hono/jsx */
import { type ApiAnswer, type DocumentedOperation, nameOf, type Ref } from "./api-document.ts";
import { Type } from "./api-fields.tsx";

/** What an operation answers: each status with its schema and headers, and the codes of its errors. */
export function Answers({ responses }: Pick<DocumentedOperation, "responses">) {
  const all = Object.entries(responses);
  const good = all.flatMap(([status, answer]) => ("$ref" in answer || isError(answer) ? [] : [{ status, answer }]));
  const errors = all.flatMap(([status, answer]) => codesOf(answer).map((code) => ({ status, code })));
  return (
    <>
      <h4>Answers</h4>
      <ul>
        {good.map(({ status, answer }) => {
          const schema = Object.values(answer.content ?? {})[0]?.schema;
          return (
            <li>
              <b>{status}</b> {answer.description}
              {schema === undefined ? null : (
                <>
                  {" "}
                  <Type schema={schema} />
                </>
              )}
              <HeadersOf answer={answer} />
            </li>
          );
        })}
      </ul>
      {errors.length === 0 ? null : (
        <p class="small">
          Errors:{" "}
          {errors.map(({ status, code }, at) => (
            <>
              {at === 0 ? "" : ", "}
              {status} <a href={`/docs/errors#${code}`}>{code}</a>
            </>
          ))}
        </p>
      )}
    </>
  );
}

/** Beside the id, which every answer carries. */
function HeadersOf({ answer }: { readonly answer: ApiAnswer }) {
  const names = Object.keys(answer.headers ?? {}).filter((name) => name !== "X-Request-Id");
  if (names.length === 0) return null;
  return (
    <span class="small">
      {" "}
      Headers:{" "}
      {names.map((name, at) => (
        <>
          {at === 0 ? "" : ", "}
          <code>{name}</code>
        </>
      ))}
    </span>
  );
}

/** The codes of an error answer: one by its name, several by their examples. */
function codesOf(answer: ApiAnswer | Ref): readonly string[] {
  if ("$ref" in answer) return [nameOf(answer)];
  return isError(answer) ? [...answer.description.matchAll(/^- `(\w+)`/gm)].map(([, code = ""]) => code) : [];
}

function isError(answer: ApiAnswer): boolean {
  return answer.description.startsWith("- `");
}
