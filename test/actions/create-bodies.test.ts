import { describe, expect, test } from "bun:test";
import { formJson } from "../../src/core/body.ts";
import { toCreateInput } from "../../src/actions/create-schema.ts";
import { anAction, NOON } from "../support/factory.ts";
import { refusalOf, rigCreate } from "./create-rig.ts";

const check = rigCreate();

const create = (members: string) => check(`{"url":"https://api.example.com/",${members}}`);

const bodyOf = (members: string) => {
  const { body, extras } = create(members).request;
  return [extras.bodyKind, body];
};

const issuesOf = (members: string) => refusalOf(() => create(members));

describe("a body other than a JSON object", () => {
  test.each([
    [
      "any JSON value, with numbers as written",
      `"json":[1.0, 12345678901234567890,{"b":1,"a":[]}]`,
      "json",
      `[1.0,12345678901234567890,{"b":1,"a":[]}]`,
    ],
    ["the value null, which is no absence", `"json":null`, "json", "null"],
    ["a word, a number, a string", `"json":"x"`, "json", `"x"`],
    ["an object, in its order", `"json":{"2":1,"1":2}`, "json", `{"2":1,"1":2}`],
    [
      "a form, in its order",
      `"form":{"2":"b","1":"a","a b":["x","y&z",""],"ä":"€"}`,
      "form",
      "2=b&1=a&a+b=x&a+b=y%26z&a+b=&%C3%A4=%E2%82%AC",
    ],
    [
      "a form with white space in its JSON",
      `"form" : { "b" : [ "1" , "2" ] , "a" : "\\u0041\\n" }`,
      "form",
      "b=1&b=2&a=A%0A",
    ],
    ["a form with a name twice: the last counts", `"form":{"a":"1","b":"2","a":"3"}`, "form", "a=3&b=2"],
    ["a form whose name is `__proto__`", `"form":{"__proto__":"x"}`, "form", "__proto__=x"],
    ["an empty form", `"form":{}`, "form", ""],
    ["a text", `"text":"a,b\\n1,2"`, "text", "a,b\n1,2"],
    ["an empty text", `"text":""`, "text", ""],
    ["bytes", `"base64":"AAEC/w=="`, "base64", "AAEC/w=="],
    ["one member, where the others are null", `"body":null,"form":null,"text":"x"`, "text", "x"],
  ])("is taken: %s", (_, members, kind, body) => {
    expect(bodyOf(members)).toEqual([kind as "json", body]);
  });

  test.each([
    ["two members", `"body":{},"text":"x"`, ["text"]],
    ["null beside another one", `"json":null,"body":{}`, ["json"]],
    ["all of them", `"body":{},"json":1,"form":{},"text":"","base64":""`, ["json", "form", "text", "base64"]],
    ["GET", `"method":"GET","text":"x"`, ["text"]],
    ["a form that is no object", `"form":["a"]`, ["form"]],
    [
      "values of a form that are no strings",
      `"form":{"a":1,"b":{"c":"d"},"c":["x",[]],"d":null,"e":"x"}`,
      ["form.a", "form.b", "form.c", "form.d"],
    ],
    ["a form with a lone surrogate", `"form":{"a":"\\ud800"}`, ["form.a"]],
    ["a form with too many pairs", `"form":{"a":[${Array.from({ length: 1_001 }, () => '"x"').join(",")}]}`, ["form"]],
    ["a form that is too long once encoded", `"form":{"a":"${"€".repeat(120_000)}"}`, ["form"]],
    ["a text that is no string", `"text":{}`, ["text"]],
    ["a text with NUL", `"text":"a\\u0000b"`, ["text"]],
    ["a text with a lone surrogate", `"text":"\\udc00"`, ["text"]],
    ["base64 without padding", `"base64":"AAEC/w"`, ["base64"]],
    ["base64 for URLs", `"base64":"AAEC_w=="`, ["base64"]],
    ["base64 with white space", `"base64":"AAEC\\n/w=="`, ["base64"]],
    ["base64 with bits that say nothing", `"base64":"AAEC/x=="`, ["base64"]],
  ])("is refused: %s", (_, members, fields) => {
    expect(issuesOf(members)).toEqual({ code: "validation_error", fields });
  });

  test("is created again as it was", () => {
    const written = [
      `"json":[1.0,{"2":1,"1":2}]`,
      `"form":{"2":"b","1":["x","y"],"a":"ä"}`,
      `"text":"a\\nb"`,
      `"base64":"AAEC/w=="`,
      `"body":{"a":1.0},"title":"A title","metadata":{"a":"b"}`,
    ];
    for (const members of written) {
      const { request } = create(members);
      const again = rigCreate();
      const input = toCreateInput(anAction({ ...request }), NOON);
      const text = JSON.stringify(input.value);
      expect(text).toContain("https://api.example.com/");
      // The rig reads members from a text: give it those of the action.
      const { body, extras } = request;
      const json = extras.bodyKind === "form" ? formJson(body ?? "") : body;
      const isText = extras.bodyKind === "text" || extras.bodyKind === "base64";
      if (!isText) expect(input.bodyText("json")).toBe(json ?? "");
      expect(again(text).request).toMatchObject({ title: request.title, extras });
    }
  });
});

describe("title and metadata", () => {
  test("are kept as they are, and reason beside them", () => {
    const { request, reason } = create(`"title":"Refund 12 €","reason":"lost","metadata":{"order":"7","a.b-C_d":""}`);
    expect(request).toMatchObject({
      title: "Refund 12 €",
      extras: { reason: "lost", metadata: { order: "7", "a.b-C_d": "" } },
    });
    expect(reason).toBe("lost");
  });

  test("that say nothing are absent", () => {
    expect(create(`"title":null,"metadata":{},"reason":null`).request).toMatchObject({ title: null, extras: {} });
  });

  test.each([
    ["an empty title", `"title":""`, ["title"]],
    ["a title of spaces", `"title":" \u00a0"`, ["title"]],
    ["a title of two lines", `"title":"a\\nb"`, ["title"]],
    ["a title with a control character", `"title":"a\\u001b[2J"`, ["title"]],
    ["a title with a line separator", `"title":"a\\u2028b"`, ["title"]],
    ["a title with a lone surrogate", `"title":"a\\ud800"`, ["title"]],
    ["a title that is too long", `"title":"${"x".repeat(121)}"`, ["title"]],
    ["metadata that is no object", `"metadata":["a"]`, ["metadata"]],
    [
      "names and values that can't be",
      `"metadata":{"a b":"x","":"x","a\\n":"x","b":1,"c":null,"d":"\\u0000","e":"${"x".repeat(501)}","${"n".repeat(65)}":"x"}`,
      [
        "metadata.a b",
        "metadata.",
        "metadata.a\n",
        "metadata.b",
        "metadata.c",
        "metadata.d",
        "metadata.e",
        `metadata.${"n".repeat(65)}`,
      ],
    ],
    ["too many names", `"metadata":{${Array.from({ length: 21 }, (_, at) => `"n${at}":"x"`).join(",")}}`, ["metadata"]],
  ])("are refused: %s", (_, members, fields) => {
    expect(issuesOf(members)).toEqual({ code: "validation_error", fields });
  });
});
