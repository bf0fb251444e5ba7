; Of several patterns that match one name, the first counts.

(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(function_signature name: (identifier) @name) @definition.function
(class_declaration name: (type_identifier) @name) @definition.class
(abstract_class_declaration name: (type_identifier) @name) @definition.class
(interface_declaration name: (type_identifier) @name) @definition.interface
(type_alias_declaration name: (type_identifier) @name) @definition.type
(enum_declaration name: (identifier) @name) @definition.enum
(enum_body name: (property_identifier) @name @definition.variant)
(enum_assignment name: (property_identifier) @name) @definition.variant
(internal_module name: (identifier) @name) @definition.module
(module name: (identifier) @name) @definition.module
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @definition.method
(interface_body
  [(method_signature name: (property_identifier) @name) @definition.method
   (property_signature name: (property_identifier) @name) @definition.field])
(type_alias_declaration
  value: (object_type
    [(method_signature name: (property_identifier) @name) @definition.method
     (property_signature name: (property_identifier) @name) @definition.field]))
(class_body (method_signature name: (property_identifier) @name) @definition.method)
(abstract_method_signature name: (property_identifier) @name) @definition.method
(variable_declarator
  name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression)]) @definition.function
(pair
  key: (property_identifier) @name
  value: [(arrow_function) (function_expression)]) @definition.method
(public_field_definition
  name: (property_identifier) @name
  value: [(arrow_function) (function_expression)]) @definition.method
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @name) @definition.field
(program
  (lexical_declaration
    kind: "const"
    (variable_declarator name: (identifier) @name) @definition.constant))
(export_statement
  (lexical_declaration
    kind: "const"
    (variable_declarator name: (identifier) @name) @definition.constant))
(program
  [(lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable)
   (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable)])
(export_statement
  (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(ambient_declaration
  [(lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable)
   (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable)])

(call_expression function: (identifier) @reference.call)
(call_expression
  function: (member_expression
    property: [(property_identifier) (private_property_identifier)] @reference.call))
(new_expression constructor: (identifier) @reference.call)
(decorator (identifier) @reference.call)
(type_identifier) @reference.type
[(identifier)
 (property_identifier)
 (private_property_identifier)
 (shorthand_property_identifier)
 (shorthand_property_identifier_pattern)] @reference.other
