/** highlight.js with the languages of our documents. */
export declare const highlighter: {
  getLanguage(name: string): object | undefined;
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { readonly value: string };
};
