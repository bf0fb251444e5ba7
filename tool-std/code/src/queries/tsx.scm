; What JSX adds to the query of TypeScript.

(jsx_self_closing_element name: (identifier) @reference.call)
(jsx_opening_element name: (identifier) @reference.call)
