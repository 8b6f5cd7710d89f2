// A rule of oxlint: no pattern may take more than linear time on any text. `scslre` finds what backtracks, also where the
// text before a match is scanned again from each of its characters. Plain JavaScript: oxlint runs it on Node 20.
import { analyse } from "scslre";

const rule = {
  create(context) {
    const judge = (node, source, flags, isAllowed = () => false) => {
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
        context.report({ node, message: "Build the pattern of texts in this file, so that it can be judged here." });
      } else judge(node, pattern, flags ?? "");
    };
    return {
      Literal(node) {
        if (node.regex !== undefined && node.regex !== null) judge(node, node.regex.pattern, node.regex.flags);
      },
      NewExpression: construct,
      CallExpression: construct,
      // A schema compiles it as typebox does.
      Property(node) {
        if (node.computed || (node.key.name ?? node.key.value) !== "pattern") return;
        const pattern = textOf(node.value, context.sourceCode);
        if (pattern !== null) judge(node, pattern, "u", isNoPattern);
      },
    };
  },
};

/** What is wrong with a pattern, or null. Throws where it can't be read. */
function faultOf(source, flags) {
  const [report] = analyse({ source, flags }, { maxReports: 1 }).reports;
  if (report === undefined) return null;
  const { source: repeated } = report.character.literal;
  return `On a long run of ${repeated} this pattern takes more than linear time: bound it, anchor it, or read by hand.`;
}

/** A member called `pattern` may be a time table as well. */
function isNoPattern(error) {
  return error instanceof SyntaxError;
}

/** What an expression of literals and of this module's own constants says, or null. */
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

/** The expression that a `const` of this file was given. */
function constantOf(identifier, sourceCode) {
  let scope = sourceCode.getScope(identifier);
  while (scope !== null && !scope.set.has(identifier.name)) scope = scope.upper;
  const [definition] = scope?.set.get(identifier.name)?.defs ?? [];
  if (definition?.type !== "Variable" || definition.parent.kind !== "const") return null;
  return definition.node.id.type === "Identifier" ? definition.node.init : null;
}

export default { meta: { name: "outgate" }, rules: { "linear-patterns": rule } };
