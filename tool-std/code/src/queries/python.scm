; Of several patterns that match one name, the first counts.

(function_definition name: (identifier) @name) @definition.function
(class_definition name: (identifier) @name) @definition.class
(type_alias_statement left: (type (identifier) @name)) @definition.type
(module (expression_statement (assignment left: (identifier) @name) @definition.variable))
(module
  (expression_statement
    (assignment left: (pattern_list (identifier) @name)) @definition.variable))
(class_definition
  body: (block (expression_statement (assignment left: (identifier) @name) @definition.field)))

(call function: (identifier) @reference.call)
(call function: (attribute attribute: (identifier) @reference.call))
(decorator (identifier) @reference.call)
(type (identifier) @reference.type)
(type) @reference.quoted
(class_definition superclasses: (argument_list (identifier) @reference.type))
(identifier) @reference.other
