import { describe, expect, test } from "bun:test";
import { maskJsonText, maskText } from "../../src/receipts/masking.ts";

/** Shorter than what is hidden from whoever decides, and a password of several words. */
const SHORT = "hunter2";

const WORDS = "correct horse";

/** As its issuer would draw it. */
const DRAWN = "x9Kq2Lm8Vb3Zt7Rw";

/** `S` stands for the secret; all else has to stay, byte for byte. */
const LINES: readonly (readonly [form: string, text: string])[] = [
  ["YAML", "service: web\npassword: S\nport: 80"],
  ["YAML, with a comment above", "# the next is secret\n  db_password:   S\n  db_name: orders"],
  ["YAML in single quotes", "password: 'S'\nuser: ann"],
  ["YAML in double quotes", 'password: "S"\nuser: ann'],
  ["YAML in braces", "{ user: ann, password: S, port: 80 }"],
  ["YAML, a list in a list", "users:\n  - password: S\n    role: admin"],
  [
    "YAML, what a variable is called",
    "env:\n  - name: DB_PASSWORD\n    value: S\n  - name: LOG_LEVEL\n    value: debug",
  ],
  [
    "YAML, a parameter of CloudFormation",
    "- ParameterKey: DbPassword\n  ParameterValue: S\n- ParameterKey: Region\n  ParameterValue: eu",
  ],
  ["YAML, an attribute of OpenTelemetry", "- key: db.password\n  stringValue: S\n- key: page\n  stringValue: a"],
  ["YAML, a text of its own", "api_key: |\n  S\nport: 80"],
  ["YAML, folded", "users:\n  token: >-\n    S\n  port: 80"],
  ["YAML, a map", "credentials:\n  ann: S\nport: 80"],
  ["YAML, a list", "secrets:\n  - S\nport: 80"],
  ["YAML, a list that is not further in", "db:\n  secrets:\n  - S\n  port: 80"],
  ["YAML, a text of a given inset", "api_key: |2-\n  S\nport: 80"],
  ["YAML, a text with a tag and an anchor", "api_key: !!str &key |\n  S\nport: 80"],
  ["YAML, a key of its own", "db:\n  ? password\n  : S\n  ? port\n  : 80"],
  ["YAML, a key of its own in quotes", "- ? 'api_key' \n  : S\n  port: 80"],
  ["YAML, a key and a text of their own", "? password\n: |\n  S\n? port\n: 80"],
  ["INI", "[db]\nuser=ann\npassword = S\nport = 80"],
  ["INI without blanks", "[db]\npassword=S\nport=80"],
  ["TOML", '[db]\npassword = "S"\nport = 80'],
  ["TOML in single quotes", "[db]\npassword = 'S'\nport = 80"],
  ["TOML in three double quotes", '[db]\npassword = """S"""\nport = 80'],
  ["TOML in three single quotes", "[db]\npassword = '''S'''\nport = 80"],
  ["a file of variables", 'export DB_PASSWORD="S"\nPORT=80'],
  ["HTTP headers", "POST / HTTP/1.1\r\nX-Api-Key: S\r\nAccept: text/plain\r\n\r\nhi"],
  ["HTTP headers without blanks", "Authorization:S\nAccept:text/plain"],
  ["a header of curl", "curl -H 'X-Api-Key: S' https://api.example.com/a"],
  ["a header of curl in double quotes", 'curl -H "X-Api-Key: S" https://api.example.com/a'],
  ["an object of JavaScript", "fetch('/a', { user: 'ann', password: 'S', page: 2 })"],
  ["an object of Python", "{'user': 'ann', 'password': 'S', 'page': 2}"],
  ["an array of PHP", "['user' => 'ann', 'password' => 'S', 'page' => 2]"],
  ["Go", 'password := "S"\nport := 80'],
  ["arguments of GraphQL", 'mutation { login(user: "ann", password: "S", page: 2) { name } }'],
  ["XML", "<login><password>S</password><page>2</page></login>"],
  ["HTML", '<input name="password" value="S"><input name="page" value="2">'],
  [
    "XML, an attribute of a longer name",
    '<attribute key="db.password" stringValue="S"/><attribute key="page" stringValue="2"/>',
  ],
  ["HTML, the value first", '<input value="S" name="password"><input name="page" value="2">'],
  ["HTML, both values first", '<input value="S" name="password"><input value="2" name="page">'],
  ["HTML in capitals", "<INPUT\nVALUE='S' NAME='password' >\n<INPUT\n\tVALUE='2' NAME='page'/>"],
  ["HTML, an attribute with many blanks", '<input name="password" value            ="S"><input value="2" name="page">'],
  ["XML, a value in an element of its own", '<property name="password"><bean value="S"/></property><bean value="2"/>'],
  ["HTML, a field of a password", "<input class=wide type=password value='S' name=x><input type=text value='2'>"],
  ["HTML, a field that browsers fill in", '<input autocomplete="current-password"\n  value = "S">'],
  ["HTML, a text without quotes", "<textarea rows=2 name=api_key>S</textarea>"],
  ["HTML, a text with another attribute first", '<textarea id="t1" name="password">S</textarea>'],
  ["XML, the name behind an id", '<entry id=7 key="api_key">S</entry><entry id=8 key="page">2</entry>'],
  ["XML, the value first", '<add value="S" key="ApiKey"/>'],
  [
    "HTML, written as references",
    '<pre title="a">{&quot;password&quot;:&#34;S&#34;,&quot;page&quot;:2}</pre> &amp; more',
  ],
  ["HTML, in an attribute", `<div data-form="{&quot;page&quot;:2,&quot;password&quot;:&quot;S&quot;}" class='a'>`],
  ["HTML, a name with references", "<p>user: ann</p><p>p&#97;ss&#x77;ord: S</p>"],
  ["HTML, an input with references", '<input name="p&#97;ssword" value="S"><input name="page" value="2">'],
  ["XML in XML", "<text>&lt;password&gt;S&lt;/password&gt;&lt;page&gt;2&lt;/page&gt;</text>"],
  ["XML in XML in XML", "<text>&amp;lt;password&amp;gt;S&amp;lt;/password&amp;gt;</text>"],
  ["an element of XML that is named with references", '<map><entry key="p&#97;ssword">S</entry></map>'],
  ["Spanish", "usuario: ann\ncontraseña: S\npuerto: 80"],
  ["Spanish, with a mark of its own", "usuario: ann\ncontrasen\u0303a: S"],
  ["Portuguese", "usuario=ann\nSENHA_DB=S\nporta=80"],
  ["German", "{ benutzer: ann, neuesPasswort: S, port: 80 }"],
  ["French", "utilisateur: ann\nmot_de_passe: S"],
  ["Dutch", "gebruiker: ann\nwachtwoord: S"],
  ["Polish", "[db]\nHASŁO = S\nport = 80"],
  ["Russian", "Имя: Анна\nПароль: S"],
  ["Chinese", "<登录><密码>S</密码><页>2</页></登录>"],
  ["a text", "The API key: S"],
  [
    "multipart",
    '--b\r\nContent-Disposition: form-data; name="password"\r\n\r\nS\r\n--b\r\nContent-Disposition: form-data; name="page"\r\n\r\n2\r\n--b--',
  ],
  ["multipart, encoded", "--b\r\nContent-Disposition: form-data; name*=UTF-8''pass%77ord\r\n\r\nS\r\n--b--"],
  ["multipart in capitals", '--b\r\nCONTENT-DISPOSITION: FORM-DATA; NAME="password"\r\n\r\nS\r\n--b--'],
  ["a password of curl in quotes", 'curl -u ann:"S" https://api.example.com/a'],
  ["a user and a password of curl in quotes", "curl --user 'ann':'S' https://api.example.com/a"],
  ["an option in quotes", "vault login --token 'S' --method token"],
  ["an option in double quotes", 'psql -Password "S" -h db'],
  ["a password in SQL", "ALTER ROLE ann WITH PASSWORD 'S' LOGIN"],
  ["a password of another user in SQL", "SET PASSWORD FOR 'ann'@'db' = 'S';"],
  ["a new user in SQL", "create user ann identified by 'S' account unlock"],
  ["an element of XML that is named", '<map><entry key="password">S</entry><entry key="page">2</entry></map>'],
];

/** A value there can't have blanks. */
const WORD_ONLY: readonly (readonly [form: string, text: string])[] = [
  [".netrc", "machine api.example.com login ann password S\nmachine b.example.com"],
  [".netrc on lines", "machine api.example.com\n  login ann\n  password S\n"],
  ["curl -u", "curl -u ann:S https://api.example.com/a"],
  ["curl --user", "curl --user 'ann:S' https://api.example.com/a"],
  ["curl --proxy-user", 'curl --proxy-user="ann:S" https://api.example.com/a'],
  ["variables of psql", "PGPASSWORD=S PGPORT=80 psql"],
  ["variables on a line", "DB_PASSWORD=S PORT=80 ./run --now"],
  ["HTML without quotes", "<input value=S name=password><input name=page value=2>"],
  ["HTML without quotes, both values first", "<input type=hidden value=S name=password><input value=2 name=page>"],
  ["an option", "run --user ann --db-password S --port 80"],
  ["in a sentence", "use token:S, then go on"],
];

const withSecret = (text: string, secret: string) => text.replace(/\bS\b/, () => secret);

const CASES = [
  ...LINES.flatMap(([form, text]) => [SHORT, WORDS, DRAWN].map((secret) => ({ form, text, secret }))),
  ...WORD_ONLY.flatMap(([form, text]) => [SHORT, DRAWN].map((secret) => ({ form, text, secret }))),
];

describe("a value with the name of a secret", () => {
  test.each(CASES)("is hidden from the public, and nothing else is, in $form: $secret", ({ text, secret }) => {
    const masked = maskText(withSecret(text, secret), "public");
    expect(masked.replace(/••••\([^)]*\)/, "S")).toBe(text);
    expect(maskText(masked, "public")).toBe(masked);
    const nested = JSON.stringify({ text: withSecret(text, secret), n: 1.5 });
    expect(JSON.parse(maskJsonText(nested, "public"))).toEqual({ text: masked, n: 1.5 });
  });

  test.each(CASES)("is hidden from whoever decides if it looks generated, in $form: $secret", ({ text, secret }) => {
    const shown = maskText(withSecret(text, secret), "decider");
    expect(shown.replace(/••••\([^)]*\)/, "S")).toBe(secret === DRAWN ? text : withSecret(text, secret));
    expect(maskText(shown, "decider")).toBe(shown);
  });
});

test.each([
  ['curl -u ann:"@hunter2" https://x', 'curl -u ann:"••••(password,8-chars)" https://x'],
  ['curl -u ann:"hun@ter 2" https://x', 'curl -u ann:"••••(password,9-chars)" https://x'],
  ['curl -u "ann":"hunter2@x.example" https://x', 'curl -u "ann":"••••(password,17-chars,…mple)" https://x'],
  ["curl -u ann:$'@hunter2' https://x", "curl -u ann:$'••••(password,8-chars)' https://x"],
  ['{"cut: "curl -u ann:\\"@hunter2\\" x', '{"cut: "curl -u ann:\\"••••(password,8-chars)\\" x'],
  ['{"cut: "curl -u \\"ann:@hunter2\\" x', '{"cut: "curl -u \\"ann:••••(password,8-chars)\\" x'],
  ['curl -u ann:"hun\\"ter2" x', 'curl -u ann:"••••(password,9-chars)" x'],
  ['curl -u "ann:hun\\"ter2" x', 'curl -u "ann:••••(password,9-chars)" x'],
  ['curl -u ann:hun"ter2" x', 'curl -u ann:••••(password,3-chars)"••••(password,4-chars)" x'],
  [`curl -u ann:hun'ter 2'x9 y`, "curl -u ann:••••(password,3-chars)'••••(password,5-chars)'••••(password,2-chars) y"],
  ['curl -u "ann:hun"ter2 x', 'curl -u "ann:••••(password,3-chars)"••••(password,4-chars) x'],
  [`curl -u 'ann':"hun"'ter2' x`, `curl -u 'ann':"••••(password,3-chars)"'••••(password,4-chars)' x`],
  ['curl -u ann:hun"ter2', 'curl -u ann:••••(password,3-chars)"••••(password,4-chars)'],
  ['run "curl -u ann:hunter2", then wait', 'run "curl -u ann:••••(password,7-chars)", then wait'],
  [`{ 'run': 'curl -u ann:hunter2', 'n': 1 }`, `{ 'run': 'curl -u ann:••••(password,7-chars)', 'n': 1 }`],
  ['curl -u ann:"@hunter2', 'curl -u ann:"••••(password,8-chars)'],
  ["curl -u 'ann:@hunter2", "curl -u 'ann:••••(password,8-chars)"],
])("the login of curl in %p is shown to the public as %p", (text, masked) => {
  expect(maskText(text, "public")).toBe(masked);
  expect(maskText(masked, "public")).toBe(masked);
});

test("a password of curl that looks generated is hidden from whoever decides in all its parts", () => {
  expect(maskText('curl -u ann:x9Kq2Lm8"Vb3Zt7Rw" x', "decider")).toBe(
    'curl -u ann:••••(password,8-chars)"••••(password,8-chars)" x',
  );
  expect(maskText('curl -u ann:hun"ter2" x', "decider")).toBe('curl -u ann:hun"ter2" x');
});

test.each([
  "https://token.example.com/a: the page of it",
  "at Auth::Token in main.rb:12",
  "query($password: String!) { user { name } }",
  "Total: 5, date: 12:30, ratio 1:2, key: value",
  "public_key: abc\nsort_key = created\nkeyboard: de",
  "docker run -u 1000:1000 web",
  "npm run test -- --page 2 --keys --token --session",
  "a non-secret one, of the pass-through kind",
  "select 'ann' as secretary, password from users where name = 'ann'",
  'Content-Disposition: form-data; name="page"\r\n\r\n2\r\n--b',
  "- name: LOG_LEVEL\n  value: debug",
  "? page\n: 2\n\n: 3",
  "<input name=page value=2 type=text> a < b = c, value=3 > name=password",
  "<input name=password><input value=2 name=page>",
  '<h2 id="access-token">Access tokens</h2><label id="password">Your password</label>',
  "Tom &amp; Jerry <b title='&quot;a&quot;'>&#8364; 5&nbsp;&lt;&#x110000;</b> &unknown;",
  "hasLogo: true\nименование: x\ncompte: ann",
])("hides nothing in %p", (text) => {
  for (const viewer of ["public", "decider"] as const) expect(maskText(text, viewer)).toBe(text);
});

describe("JSON that says in one member what another is called", () => {
  test.each([
    ['{"name":"password","value":"hunter2","n":1}', '{"name":"password","value":"••••(password,7-chars)","n":1}'],
    ['{"value":"hunter2","key":"DB_PASSWORD"}', '{"value":"••••(password,7-chars)","key":"DB_PASSWORD"}'],
    [
      '[{"Name":"X-Api-Key","a":{"value":"x","name":"page"},"Value":"hunter2"},{"name":"page","value":"2"}]',
      '[{"Name":"X-Api-Key","a":{"value":"x","name":"page"},"Value":"••••(key,7-chars)"},{"name":"page","value":"2"}]',
    ],
    [
      '{"name":"token","value":["a",{"b":"c"}]}',
      '{"name":"token","value":["••••(token,1-char)",{"b":"••••(token,1-char)"}]}',
    ],
    // As CloudFormation, OpenTelemetry and lists of fields write them.
    [
      '{"ParameterKey":"DBPassword","ParameterValue":"hunter2"}',
      '{"ParameterKey":"DBPassword","ParameterValue":"••••(password,7-chars)"}',
    ],
    [
      '{"key":"db.password","value":{"stringValue":"hunter2"}}',
      '{"key":"db.password","value":{"stringValue":"••••(password,7-chars)"}}',
    ],
    ['{"key":"db.password","stringValue":"hunter2"}', '{"key":"db.password","stringValue":"••••(password,7-chars)"}'],
    ['{"label":"Password","value":"hunter2"}', '{"label":"Password","value":"••••(password,7-chars)"}'],
    ['{"name":"token","value":12}', '{"name":"token","value":"••••(token,2-chars)"}'],
  ])("%s is shown to the public as %s", (json, masked) => {
    expect(maskJsonText(json, "public")).toBe(masked);
    expect(maskJsonText(masked, "public")).toBe(masked);
  });

  test.each([
    [
      '[["authorization","Bearer hunter2"],[ "X-Api-Key" , "hunter2" ],["accept","text/plain"]]',
      '[["authorization","••••(credentials,14-chars)"],[ "X-Api-Key" , "••••(key,7-chars)" ],["accept","text/plain"]]',
    ],
    ['{"headers":[["a","b"],\n["token","c"]]}', '{"headers":[["a","b"],\n["token","••••(token,1-char)"]]}'],
    ['{"required":["password","email"]}', '{"required":["password","email"]}'],
    [
      '[["password","email","name"],["token"],["token",["a"]]]',
      '[["password","email","name"],["token"],["token",["a"]]]',
    ],
    ['[["token","a', '[["token","a'],
  ])("or in a list of pairs: %s is shown to the public as %s", (json, masked) => {
    expect(maskJsonText(json, "public")).toBe(masked);
    expect(maskJsonText(masked, "public")).toBe(masked);
  });

  test("is shown to whoever decides, but for what looks generated", () => {
    const json = (value: string) => JSON.stringify([{ name: "password", value }]);
    expect(maskJsonText(json(SHORT), "decider")).toBe(json(SHORT));
    expect(maskJsonText(json(DRAWN), "decider")).toBe(json("••••(password,16-chars,…t7Rw)"));
  });
});

test("values in a list of raw headers are hidden by the names before them", () => {
  const masked = (json: string) => maskJsonText(json, "public");
  expect(masked(`{"rawHeaders":["Host","a.example","X-Api-Key", "${SHORT}","Accept","*/*"],"page":2}`)).toBe(
    '{"rawHeaders":["Host","a.example","X-Api-Key", "••••(key,7-chars)","Accept","*/*"],"page":2}',
  );
  expect(masked(`{"raw_trailers":["Cookie","a=${SHORT}"`)).toBe('{"raw_trailers":["Cookie","••••(cookie,9-chars)"');
  for (const other of [
    '{"headers":["Authorization","X-Api-Key"]}',
    '{"rawHeaders":[]}',
    '{"rawHeaders":["Cookie"]}',
    '{"rawHeaders":["Cookie",{"page":2}]}',
    '["password","email"]',
  ]) {
    expect(masked(other)).toBe(other);
  }
});
