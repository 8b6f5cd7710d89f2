/** A migration is imported as text, so that a single binary carries it. */
declare module "*.sql" {
  const text: string;
  export default text;
}
