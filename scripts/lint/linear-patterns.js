// A rule of oxlint: every regular expression must take linear time on any text. `scslre` finds backtracking, and also
// quadratic search where a match is tried again from every character. Plain JavaScript: oxlint runs it on Node 20.
import { analyse } from "scslre";

const rule = {
  create(context) {
    const check = (node, source, flags, isAllowed = () => false) => {
      try {
        const fault = faultOf(source, flags);
        if (fault !== null) context.report({ node, message: fault });
      } catch (error) {
        if (!isAllowed(error)) context.report({ node, message: `scslre can't read this pattern: ${error.message}.` });
      }
    };
    const construct = (node) => {
      if (node.callee.type !== "Identifier" || node.callee.name !== "RegExp") return;
      const [pattern, flags] = node.arguments.map((argument) => textOf(argument, context.sourceCode));
      if (typeof pattern !== "string" || flags === null) {
        context.report({
          node,
          message: "Build the pattern from constants in this file, so that this rule can check it.",
        });
      } else check(node, pattern, flags ?? "");
    };
    return {
      Literal(node) {
        if (node.regex !== undefined && node.regex !== null) check(node, node.regex.pattern, node.regex.flags);
      },
      NewExpression: construct,
      CallExpression: construct,
      // The `pattern` of a schema, which typebox compiles with the flag u.
      Property(node) {
        if (node.computed || (node.key.name ?? node.key.value) !== "pattern") return;
        const pattern = textOf(node.value, context.sourceCode);
        if (pattern !== null) check(node, pattern, "u", isNotPattern);
      },
    };
  },
};

/** The message about a pattern, or null where it is linear. Throws where it can't be parsed. */
function faultOf(source, flags) {
  const [report] = analyse({ source, flags }, { maxReports: 1 }).reports;
  if (report === undefined) return null;
  const { source: repeated } = report.character.literal;
  return `On a long run of ${repeated} this pattern takes more than linear time: bound it, anchor it, or parse by hand.`;
}

/** A property named `pattern` need not hold a regular expression: it may be a cron expression. */
function isNotPattern(error) {
  return error instanceof SyntaxError;
}

/** The text of an expression made of literals and of this module's constants, or null. */
function textOf(node, sourceCode) {
  if (node === undefined) return undefined;
  if (node.type === "Literal") return node.regex ? null : String(node.value);
  if (node.type === "Identifier") return textOf(constantOf(node, sourceCode) ?? {}, sourceCode);
  if (node.type === "TemplateLiteral") return joined(node, ({ cooked }) => cooked, sourceCode);
  if (node.type === "TaggedTemplateExpression" && sourceCode.getText(node.tag) === "String.raw") {
    return joined(node.quasi, ({ raw }) => raw, sourceCode);
  }
  if (node.type !== "BinaryExpression" || node.operator !== "+") return null;
  const [left, right] = [textOf(node.left, sourceCode), textOf(node.right, sourceCode)];
  return left === null || right === null ? null : left + right;
}

function joined({ quasis, expressions }, spelling, sourceCode) {
  const texts = expressions.map((expression) => textOf(expression, sourceCode));
  if (texts.includes(null)) return null;
  return quasis.map(({ value }, at) => spelling(value) + (texts[at] ?? "")).join("");
}

/** The initializer of a `const` in this file, or null. */
function constantOf(identifier, sourceCode) {
  let scope = sourceCode.getScope(identifier);
  while (scope !== null && !scope.set.has(identifier.name)) scope = scope.upper;
  const [definition] = scope?.set.get(identifier.name)?.defs ?? [];
  if (definition?.type !== "Variable" || definition.parent.kind !== "const") return null;
  return definition.node.id.type === "Identifier" ? definition.node.init : null;
}

export default { meta: { name: "outgate" }, rules: { "linear-patterns": rule } };
