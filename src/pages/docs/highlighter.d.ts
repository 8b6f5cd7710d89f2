/** highlight.js with the languages of our documents. */
export declare const highlighter: {
  /** By its name, or by what people write after a fence. */
  getLanguage(name: string): { readonly name: string } | undefined;
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { readonly value: string };
};
