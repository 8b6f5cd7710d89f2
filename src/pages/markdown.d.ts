// The documents for users are imported as text, so that a single binary carries them.

// The documents for users are imported as text, so that a single binary carries them.
declare module "*.md" {
  const text: string;
  export default text;
}
