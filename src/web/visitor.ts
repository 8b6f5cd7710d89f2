/** Whoever is signed in, as far as a page shows it. */
export interface PageUser {
  readonly email: string;
  /** Proves that a form comes from our page (hostile 7). */
  readonly formToken: string;
}
