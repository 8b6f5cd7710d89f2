// Documents are imported as text, so that a single binary contains them.
declare module "*.md" {
  const text: string;
  export default text;
}
